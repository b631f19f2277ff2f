// counterfoil_driver.hpp: put a C++ job ledger under Counterfoil's checks. One header, C++17, no
// dependencies. Derive from counterfoil::Ledger, fill in its eight functions, and write
//
//     int main() {
//       return counterfoil::drive("our ledger", [](const counterfoil::Limits& limits,
//                                                  const counterfoil::Clock& clock) {
//         return std::make_unique<OurLedger>(limits, clock);
//       });
//     }
//
// Then: counterfoil conform exec:./that_program. See README.md beside this file.
//
// The driver speaks one JSON object per line on stdin and stdout; nothing else may print to stdout.
// Operations with a "lane" run on that lane's thread. "race" repeats a small scenario with threads
// from behind a spinning barrier, "stress" lets a crew loose for a while; both stamp every call with
// the steady clock, outside the call, into a list per thread, so that recording orders nothing.
#ifndef COUNTERFOIL_DRIVER_HPP
#define COUNTERFOIL_DRIVER_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace counterfoil {

// ---- What a team fills in ---------------------------------------------------------------------

// What the ledger is configured with; times in ms.
struct Limits {
  long long max_queue = 16;
  long long job_ttl_ms = 300000;
  long long max_completed = 100;
};

// Monotonic ms. It stands still until the kit moves it (Options::driven_clock). A ledger that reads
// its own clock instead sets driven_clock = false.
using Clock = std::function<long long()>;

enum class End { finish, fail, timeout };

// A job as a read shows it. state: "pending", "running", "done", "failed", "timeout".
struct Snapshot {
  std::string state;
  std::string error;                        // "" where there is none
  std::optional<long long> submitted_at{};  // in any unit, of one monotonic clock
  std::optional<long long> completed_at{};  // set exactly when the job is terminal
};

struct Taken {
  std::string task_id;
  std::optional<std::string> payload;  // nullopt once it was handed out before
};

// The answer to result(): ready when done, otherwise the state.
struct Result {
  bool ready = false;
  std::string task_id;
  std::string result;
  std::string state;
};

// The eight functions. All but the destructor may be called from many threads at once. An unknown
// job is std::nullopt (or false); a refused transition is false.
class Ledger {
 public:
  virtual ~Ledger() = default;
  virtual std::optional<std::string> submit(const std::string& task_id,
                                            const std::string& payload) = 0;
  virtual bool start(const std::string& job) = 0;
  virtual bool end(const std::string& job, End how, const std::string& result_or_error) = 0;
  virtual std::optional<Taken> take_request(const std::string& job) = 0;
  virtual std::optional<Snapshot> snapshot(const std::string& job) = 0;
  virtual std::optional<Result> result(const std::string& job) = 0;
  virtual std::optional<Snapshot> wait(const std::string& job, long long budget_ms) = 0;
  virtual long long depth() = 0;
};

using Factory = std::function<std::unique_ptr<Ledger>(const Limits&, const Clock&)>;

// What the driver may promise. driven_clock: the ledger reads the Clock it is given, and only that,
// for all but the budget of wait(). completed_at: snapshots carry it.
struct Options {
  bool driven_clock = true;
  bool completed_at = true;
};

int drive(const std::string& name, const Factory& factory, Options options = {});

// ---- JSON, as much as the protocol needs --------------------------------------------------------

namespace detail {

struct Json {
  enum class Kind { null, boolean, number, string, array, object };
  Kind kind = Kind::null;
  bool boolean = false;
  double number = 0;
  std::string string;
  std::vector<Json> array;
  std::map<std::string, Json> object;

  const Json* find(const std::string& key) const {
    auto at = object.find(key);
    return at == object.end() ? nullptr : &at->second;
  }
  std::string text(const std::string& key, const std::string& otherwise = "") const {
    const Json* value = find(key);
    return value && value->kind == Kind::string ? value->string : otherwise;
  }
  long long integer(const std::string& key, long long otherwise = 0) const {
    const Json* value = find(key);
    return value && value->kind == Kind::number ? static_cast<long long>(value->number) : otherwise;
  }
};

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Json parse() {
    Json value = parse_value();
    skip();
    if (at_ != text_.size()) fail();
    return value;
  }

 private:
  const std::string& text_;
  std::size_t at_ = 0;

  [[noreturn]] static void fail() { throw std::runtime_error("not JSON"); }
  void skip() {
    while (at_ < text_.size() && std::string(" \t\r\n").find(text_[at_]) != std::string::npos) ++at_;
  }
  char peek() {
    skip();
    if (at_ >= text_.size()) fail();
    return text_[at_];
  }
  bool take(char c) { return peek() == c ? (++at_, true) : false; }
  void expect(char c) {
    if (!take(c)) fail();
  }
  void expect(const char* word) {
    for (; *word; ++word, ++at_)
      if (at_ >= text_.size() || text_[at_] != *word) fail();
  }

  Json parse_value() {
    Json value;
    switch (peek()) {
      case '{':
        value.kind = Json::Kind::object;
        ++at_;
        if (take('}')) return value;
        do {
          std::string key = parse_string();
          expect(':');
          value.object[key] = parse_value();
        } while (take(','));
        expect('}');
        return value;
      case '[':
        value.kind = Json::Kind::array;
        ++at_;
        if (take(']')) return value;
        do value.array.push_back(parse_value());
        while (take(','));
        expect(']');
        return value;
      case '"':
        value.kind = Json::Kind::string;
        value.string = parse_string();
        return value;
      case 't':
        expect("true");
        value.boolean = true;
        value.kind = Json::Kind::boolean;
        return value;
      case 'f':
        expect("false");
        value.kind = Json::Kind::boolean;
        return value;
      case 'n': expect("null"); return value;
      default: return parse_number();
    }
  }

  Json parse_number() {
    Json value;
    char* rest = nullptr;
    value.kind = Json::Kind::number;
    value.number = std::strtod(text_.c_str() + at_, &rest);
    std::size_t next = static_cast<std::size_t>(rest - text_.c_str());
    if (next == at_) fail();
    at_ = next;
    return value;
  }

  unsigned parse_hex() {
    unsigned code = 0;
    for (int k = 0; k < 4; ++k, ++at_) {
      if (at_ >= text_.size()) fail();
      const std::string digits = "0123456789abcdef";
      std::size_t digit = digits.find(static_cast<char>(text_[at_] | 0x20));
      if (digit == std::string::npos) fail();
      code = code * 16 + static_cast<unsigned>(digit);
    }
    return code;
  }

  std::string parse_string() {
    expect('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        out += text_[at_++];
        continue;
      }
      if (++at_ >= text_.size()) fail();
      char c = text_[at_++];
      switch (c) {
        case 'b': out += '\b'; break;
        case 'f': out += '\f'; break;
        case 'n': out += '\n'; break;
        case 'r': out += '\r'; break;
        case 't': out += '\t'; break;
        case 'u': append_escape(out); break;
        default: out += c;
      }
    }
    expect('"');
    return out;
  }

  void append_escape(std::string& out) {
    unsigned code = parse_hex();
    if (code >= 0xD800 && code < 0xDC00 && text_.compare(at_, 2, "\\u") == 0) {
      at_ += 2;
      code = 0x10000 + ((code - 0xD800) << 10) + (parse_hex() - 0xDC00);
    }
    auto put = [&out](unsigned byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0 | code >> 6), put(0x80 | (code & 63));
    } else if (code < 0x10000) {
      put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 63)), put(0x80 | (code & 63));
    } else {
      put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 63));
      put(0x80 | (code >> 6 & 63)), put(0x80 | (code & 63));
    }
  }
};

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out += '"';
}

// ---- Operations -----------------------------------------------------------------------------------

enum class Kind { submit, start, end, take, snapshot, result, wait, depth };

// One operation, read once: a race performs it thousands of times.
struct Op {
  Kind kind = Kind::depth;
  std::string name;     // as the protocol spells it
  std::string job;      // "$label" for the job of the submit that said "as": label
  std::string label;    // "as"
  std::string task_id;
  std::string payload;
  std::string text;     // result or error
  End how = End::finish;
  long long budget_ms = 0;
};

inline std::optional<Op> read_op(const Json& message) {
  static const std::map<std::string, std::pair<Kind, End>> kinds = {
      {"submit", {Kind::submit, End::finish}},     {"start", {Kind::start, End::finish}},
      {"finish", {Kind::end, End::finish}},        {"fail", {Kind::end, End::fail}},
      {"timeout", {Kind::end, End::timeout}},      {"take_request", {Kind::take, End::finish}},
      {"snapshot", {Kind::snapshot, End::finish}}, {"result", {Kind::result, End::finish}},
      {"wait", {Kind::wait, End::finish}},         {"depth", {Kind::depth, End::finish}}};
  auto at = kinds.find(message.text("op"));
  if (at == kinds.end()) return std::nullopt;
  Op op;
  op.kind = at->second.first;
  op.how = at->second.second;
  op.name = at->first;
  op.job = message.text("job");
  op.label = message.text("as");
  op.task_id = message.text("task_id");
  op.payload = message.text("payload");
  op.text = op.how == End::finish ? message.text("result") : message.text("error");
  op.budget_ms = message.integer("budget_ms");
  return op;
}

inline std::string members(const std::optional<Snapshot>& seen) {
  if (!seen) return "\"unknown\":true";
  std::string out = "\"state\":" + quoted(seen->state);
  out += ",\"error\":" + (seen->error.empty() ? "null" : quoted(seen->error));
  if (seen->submitted_at) out += ",\"submitted_at\":" + std::to_string(*seen->submitted_at);
  out += ",\"completed_at\":";
  return out += seen->completed_at ? std::to_string(*seen->completed_at) : "null";
}

inline std::string members(const std::optional<Result>& found) {
  if (!found) return "\"status\":\"not_found\"";
  if (!found->ready) return "\"status\":\"not_done\",\"state\":" + quoted(found->state);
  return "\"status\":\"ready\",\"task_id\":" + quoted(found->task_id) +
         ",\"result\":" + quoted(found->result);
}

inline std::string members(const std::optional<Taken>& taken) {
  if (!taken) return "\"unknown\":true";
  return "\"task_id\":" + quoted(taken->task_id) +
         ",\"payload\":" + (taken->payload ? quoted(*taken->payload) : "null");
}

inline std::string accepted(bool yes) { return yes ? "\"accepted\":true" : "\"accepted\":false"; }

// A finished call: the reply as JSON members, the interval in ns of the steady clock.
struct Call {
  const Op* op = nullptr;
  std::string client;
  std::string job;
  std::string reply;
  std::string issued;  // the id that a submit returned
  long long call_ns = 0;
  long long return_ns = -1;  // never returned
};

inline long long now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

// Perform one operation; the stamps lie as close around the ledger's own code as they can.
inline void perform(Ledger& ledger, const Op& op, const std::string& job, Call& call) {
  auto stamped = [&call](auto&& work) {
    call.call_ns = now_ns();
    auto answer = work();
    call.return_ns = now_ns();
    return answer;
  };
  try {
    switch (op.kind) {
      case Kind::submit: {
        auto id = stamped([&] { return ledger.submit(op.task_id, op.payload); });
        call.issued = id.value_or("");
        call.reply = id ? "\"job\":" + quoted(*id) : "\"refused\":true";
        break;
      }
      case Kind::start: call.reply = accepted(stamped([&] { return ledger.start(job); })); break;
      case Kind::end:
        call.reply = accepted(stamped([&] { return ledger.end(job, op.how, op.text); }));
        break;
      case Kind::take: call.reply = members(stamped([&] { return ledger.take_request(job); })); break;
      case Kind::snapshot: call.reply = members(stamped([&] { return ledger.snapshot(job); })); break;
      case Kind::result: call.reply = members(stamped([&] { return ledger.result(job); })); break;
      case Kind::wait:
        call.reply = members(stamped([&] { return ledger.wait(job, op.budget_ms); }));
        break;
      case Kind::depth:
        call.reply = "\"depth\":" + std::to_string(stamped([&] { return ledger.depth(); }));
        break;
    }
  } catch (const std::exception& error) {
    call.return_ns = now_ns();
    call.reply = "\"error\":" + quoted(error.what());
  }
}

inline std::string micros(long long ns) {
  if (ns < 0) return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", ns / 1000, ns % 1000);
  return text;
}

// A call as a line of a history.
inline std::string line(const Call& call) {
  const Op& op = *call.op;
  std::string args;
  if (op.kind == Kind::submit)
    args = "\"task_id\":" + quoted(op.task_id) + ",\"payload\":" + quoted(op.payload);
  if (op.kind == Kind::end)
    args = (op.how == End::finish ? "\"result\":" : "\"error\":") + quoted(op.text);
  if (op.kind == Kind::wait) args = "\"budget_ms\":" + std::to_string(op.budget_ms);
  std::string out = "{\"client\":" + quoted(call.client) + ",\"op\":" + quoted(op.name);
  if (!call.job.empty()) out += ",\"job\":" + quoted(call.job);
  out += ",\"call\":" + micros(call.call_ns) + ",\"return\":" + micros(call.return_ns);
  out += ",\"clock_id\":\"driver\",\"args\":{" + args + "},\"reply\":";
  return out += call.return_ns < 0 ? "null}" : "{" + call.reply + "}}";
}

// ---- Threads ---------------------------------------------------------------------------------------

// One thread per lane; its operations are done in turn.
class Lane {
 public:
  Lane() : thread_([this] { serve(); }) { thread_.detach(); }
  void add(std::function<void()> work) {
    std::lock_guard<std::mutex> hold(mutex_);
    work_.push_back(std::move(work));
    more_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> work_;
  std::thread thread_;

  void serve() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock<std::mutex> hold(mutex_);
        more_.wait(hold, [this] { return !work_.empty(); });
        work = std::move(work_.front());
        work_.pop_front();
      }
      work();
    }
  }
};

// The state of one thread of a race or stress. `doing` tells a watchdog what it is stuck in.
struct Part {
  std::vector<Call> calls;
  std::atomic<const Op*> doing{nullptr};
  std::string job;
  long long since_ns = 0;

  Call& perform_op(Ledger& ledger, const Op& op, const std::string& job_id,
                   const std::string& client) {
    job = job_id;
    since_ns = now_ns();
    doing.store(&op, std::memory_order_release);
    Call call;
    call.op = &op;
    call.client = client;
    call.job = job_id;
    perform(ledger, op, job_id, call);
    doing.store(nullptr, std::memory_order_release);
    calls.push_back(std::move(call));
    return calls.back();
  }

  // The finished calls, and the one that has not come back, if any. Only for a thread that is done
  // or stuck.
  void collect(const std::string& client, std::vector<Call>& into) const {
    into.insert(into.end(), calls.begin(), calls.end());
    if (const Op* op = doing.load(std::memory_order_acquire)) {
      Call call;
      call.op = op;
      call.client = client;
      call.job = job;
      call.call_ns = since_ns;
      into.push_back(call);
    }
  }
};

constexpr long long kHangMs = 12000;

// The cores this process may use; 1 where nobody knows.
inline std::vector<int> cores() {
  std::vector<int> found;
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &allowed)) found.push_back(core);
#endif
  if (found.empty())
    for (unsigned k = 0; k < std::max(1u, std::thread::hardware_concurrency()); ++k)
      found.push_back(static_cast<int>(k));
  return found;
}

// Keep the calling thread on a core of its own: threads that share one never run at once.
inline void settle_on_core(std::size_t index) {
#if defined(__linux__)
  const auto allowed = cores();
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(allowed[index % allowed.size()], &mine);
  pthread_setaffinity_np(pthread_self(), sizeof mine, &mine);
#else
  (void)index;
#endif
}

// Threads that live as long as a race; between batches they sleep.
class Crew {
 public:
  explicit Crew(std::size_t size) {
    for (std::size_t k = 0; k < size; ++k) threads_.emplace_back([this, k] { serve(k); });
  }
  ~Crew() {
    {
      std::lock_guard<std::mutex> hold(mutex_);
      quit_ = true;
      changed_.notify_all();
    }
    for (auto& thread : threads_) hung_ ? thread.detach() : thread.join();
  }
  // All parts at once; false if they have not ended `patience_ms` later.
  bool perform(const std::function<void(std::size_t)>& part, long long patience_ms) {
    std::unique_lock<std::mutex> hold(mutex_);
    part_ = part;
    left_ = threads_.size();
    ++batch_;
    changed_.notify_all();
    const auto until = std::chrono::system_clock::now() + std::chrono::milliseconds(patience_ms);
    // wait_until on the system clock: the one that every ThreadSanitizer understands.
    hung_ = !changed_.wait_until(hold, until, [this] { return left_ == 0; });
    return !hung_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void(std::size_t)> part_;
  std::size_t left_ = 0;
  unsigned long batch_ = 0;
  bool quit_ = false, hung_ = false;
  std::vector<std::thread> threads_;

  void serve(std::size_t index) {
    settle_on_core(index);
    std::unique_lock<std::mutex> hold(mutex_);
    for (unsigned long seen = 0;;) {
      changed_.wait(hold, [&] { return quit_ || batch_ != seen; });
      if (quit_) return;
      seen = batch_;
      auto part = part_;
      hold.unlock();
      part(index);
      hold.lock();
      if (--left_ == 0) changed_.notify_all();
    }
  }
};

// Where the threads of a batch meet before every turn; whoever is first spins, since a thread that
// sleeps would wake too late to race.
class Line {
 public:
  explicit Line(std::size_t size) : size_(size) {
    patience_ = size <= cores().size() ? 1000000 : 200;
  }
  void meet(std::size_t turn) {
    arrived_.fetch_add(1);
    for (unsigned spins = 0; arrived_.load() < size_ * (turn + 1); ++spins)
      if (spins > patience_) std::this_thread::yield();
  }

 private:
  std::size_t size_;
  unsigned patience_;
  std::atomic<std::size_t> arrived_{0};
};

inline std::vector<Op> read_ops(const Json* list) {
  std::vector<Op> ops;
  if (list)
    for (const Json& item : list->array) {
      auto op = read_op(item);
      if (!op) throw std::runtime_error("no such operation in a race: " + item.text("op"));
      ops.push_back(*op);
    }
  return ops;
}

using Names = std::map<std::string, std::string>;

inline void run_ops(Ledger& ledger, const std::vector<Op>& ops, const std::string& client,
                    Names& names, Part& part) {
  for (const Op& op : ops) {
    std::string job = op.job;
    if (!job.empty() && job[0] == '$') {
      auto at = names.find(job.substr(1));
      if (at == names.end() || at->second.empty()) continue;  // that submit was refused
      job = at->second;
    }
    Call& call = part.perform_op(ledger, op, job, client);
    if (!op.label.empty()) names[op.label] = call.issued;
  }
}

constexpr long long kLongNs = 500000000;

// What makes two histories the same: the replies, the order of calls and returns, and which calls
// took long: a wait that lost its wake-up is answered like any other, only late.
inline std::string pattern(const std::vector<Call>& calls, bool with_order) {
  Names jobs;
  auto name = [&jobs](const std::string& id) {
    return id.empty() ? "" : jobs.emplace(id, "#" + std::to_string(jobs.size())).first->second;
  };
  std::string key;
  std::vector<std::pair<long long, std::size_t>> ends;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    key += calls[k].client + calls[k].op->name + name(calls[k].job);
    key += calls[k].issued.empty() ? calls[k].reply : name(calls[k].issued);
    key += calls[k].return_ns - calls[k].call_ns > kLongNs ? '!' : '|';
    ends.emplace_back(calls[k].call_ns, 2 * k);
    ends.emplace_back(calls[k].return_ns, 2 * k + 1);
  }
  if (!with_order) return key;
  std::sort(ends.begin(), ends.end());
  for (auto& end : ends) (key += ',') += std::to_string(end.second);
  return key;
}

// Distinct histories and how often each came up. New replies always find room up to the limit;
// new orders of known replies only in the first half of it.
class Album {
 public:
  explicit Album(std::size_t limit) : limit_(limit) {}
  void keep(const std::vector<Call>& calls) {
    auto known = counts_.find(pattern(calls, true));
    if (known != counts_.end()) {
      ++known->second.count;
      return;
    }
    bool novel = answers_.insert(pattern(calls, false)).second;
    if (counts_.size() < (novel ? limit_ : limit_ / 2))
      counts_.emplace(pattern(calls, true), Entry{calls, 1});
  }
  std::string text() const {
    std::string out = "[";
    for (auto& item : counts_) {
      if (out.size() > 1) out += ",";
      out += "{\"count\":" + std::to_string(item.second.count) + ",\"calls\":[";
      for (std::size_t k = 0; k < item.second.calls.size(); ++k)
        (out += k ? "," : "") += line(item.second.calls[k]);
      out += "]}";
    }
    return out += "]";
  }

 private:
  struct Entry {
    std::vector<Call> calls;
    long long count;
  };
  std::size_t limit_;
  std::map<std::string, Entry> counts_;
  std::set<std::string> answers_;
};

// ---- Race and stress ---------------------------------------------------------------------------------

// A scenario, and its repetitions in batches: the ledgers of a batch are set up first, then the
// threads go through all its turns with nothing but a spin between them.
class Race {
 public:
  explicit Race(const Json& message)
      : fresh_(message.find("setup") != nullptr),
        setup_(read_ops(message.find("setup"))),
        after_(read_ops(message.find("after"))),
        repeat_(message.integer("repeat", 1)),
        limit_(static_cast<std::size_t>(message.integer("limit", 200))),
        until_ns_(now_ns() + message.integer("ms", 600000) * 1000000) {
    if (const Json* lists = message.find("threads"))
      for (const Json& list : lists->array) threads_.push_back(read_ops(&list));
    for (auto& ops : threads_) waits_.push_back(!ops.empty() && ops.front().kind == Kind::wait);
  }

  std::string run(const std::function<std::shared_ptr<Ledger>(bool)>& ledger_for) {
    Album album(limit_);
    Crew crew(threads_.size());
    for (long long played = 0; played < repeat_ && now_ns() < until_ns_;) {
      const long long size = fresh_ ? std::min(repeat_ - played, kBatch) : 1;
      std::deque<Turn> batch(static_cast<std::size_t>(size));
      for (Turn& turn : batch) set_up(turn, ledger_for(fresh_));
      Line line(threads_.size());
      std::atomic<std::size_t> last{batch.size()};
      const long long slow_ns = now_ns() + kSlowNs;
      const long long patience_ms = kHangMs + longest_wait_ms();
      const bool ended = crew.perform([&](std::size_t k) {
        for (std::size_t t = 0; t < batch.size(); ++t) {
          if (k == 0 && now_ns() > slow_ns && last.load() > t) last.store(std::max(t, std::size_t{1}));
          line.meet(t);
          if (t >= last.load()) return;
          play(batch[t], k);
        }
      }, patience_ms);
      for (std::size_t t = 0; t < std::min(last.load(), batch.size()); ++t)
        album.keep(finish(batch[t], ended));
      if (!ended) throw "\"hung\":true,\"histories\":" + album.text();
      played += size;
    }
    return "\"histories\":" + album.text();
  }

 private:
  struct Turn {
    std::shared_ptr<Ledger> ledger;
    Names names;
    Part before, later;
    std::deque<Part> parts;
    std::vector<Names> known;
    std::vector<unsigned> lag;
    bool aimed = false;
  };

  static constexpr long long kBatch = 64;
  static constexpr long long kSlowNs = 200000000;
  static constexpr long long kSleptNs = 4000;
  static constexpr int kStep = 8, kFarthest = 4000;

  bool fresh_;
  std::vector<Op> setup_, after_;
  std::vector<std::vector<Op>> threads_;
  std::vector<bool> waits_;    // of each thread: whether it begins with a wait
  std::atomic<int> aim_{0};    // how many spins later the others begin than those that wait
  long long repeat_;
  std::size_t limit_;
  long long until_ns_;
  std::mt19937 dice_{1};

  long long longest_wait_ms() const {
    long long longest = 0;
    for (auto& ops : threads_)
      for (const Op& op : ops) longest += op.budget_ms;
    return longest;
  }

  void set_up(Turn& turn, std::shared_ptr<Ledger> ledger) {
    turn.ledger = std::move(ledger);
    run_ops(*turn.ledger, setup_, "setup", turn.names, turn.before);
    turn.parts.resize(threads_.size());
    turn.known.assign(threads_.size(), turn.names);
    // Let the threads overlap differently each time.
    turn.aimed = dice_() % 4 != 0;
    for (std::size_t k = 0; k < threads_.size(); ++k)
      turn.lag.push_back(dice_() % (turn.aimed ? 30 : 500));
  }

  // A wake-up is lost if the end comes after a waiter's last look and before its sleep, which takes
  // nanoseconds. So we aim: where a wait slept the others come a little sooner the next time, where
  // it returned without sleeping a little later, and the end stays close to where sleep begins.
  void play(Turn& turn, std::size_t k) {
    const int aim = turn.aimed ? aim_.load(std::memory_order_relaxed) : 0;
    const unsigned lag = turn.lag[k] + static_cast<unsigned>(std::max(waits_[k] ? -aim : aim, 0));
    for (volatile unsigned spin = 0; spin < lag; spin = spin + 1) {
    }
    Part& part = turn.parts[k];
    run_ops(*turn.ledger, threads_[k], "thread-" + std::to_string(k), turn.known[k], part);
    if (!turn.aimed || !waits_[k] || part.calls.empty()) return;
    const bool slept = part.calls.front().return_ns - part.calls.front().call_ns > kSleptNs;
    const int next = aim + (slept ? -kStep : kStep);
    if (std::abs(next) <= kFarthest) aim_.store(next, std::memory_order_relaxed);
  }

  std::vector<Call> finish(Turn& turn, bool ended) {
    std::vector<Call> calls;
    turn.before.collect("setup", calls);
    for (std::size_t k = 0; k < threads_.size(); ++k)
      turn.parts[k].collect("thread-" + std::to_string(k), calls);
    if (!ended) return calls;
    for (Names& of_thread : turn.known) turn.names.insert(of_thread.begin(), of_thread.end());
    run_ops(*turn.ledger, after_, "after", turn.names, turn.later);
    turn.later.collect("after", calls);
    return calls;
  }
};

// Submitters, runners, pollers and waiters on the current ledger; at rest when it ends.
class Stress {
 public:
  Stress(std::shared_ptr<Ledger> ledger, const Json& message)
      : ledger_(std::move(ledger)),
        ms_(message.integer("ms", 1000)),
        runner_ms_(message.integer("runner_ms", 1)),
        max_calls_(message.integer("max_calls", 60000)),
        counts_{message.integer("submitters", 4), message.integer("runners", 2),
                message.integer("pollers", 3), message.integer("waiters", 2)} {}

  std::string run() {
    static const char* roles[] = {"submitter", "runner", "poller", "waiter"};
    std::vector<std::pair<int, std::thread>> threads;
    for (int role = 0; role < 4; ++role)
      for (long long k = 0; k < counts_[role]; ++k) {
        members_.push_back(std::make_unique<Member>());
        Member& me = *members_.back();
        me.name = std::string(roles[role]) + "-" + std::to_string(k);
        me.dice.seed(static_cast<unsigned>(members_.size()));
        threads.emplace_back(role, [this, role, &me] {
          role == 0 ? submit(me) : role == 1 ? work(me) : role == 2 ? poll(me) : wait(me);
          left_[role].fetch_add(1);
        });
      }
    std::this_thread::sleep_for(std::chrono::milliseconds(ms_));
    over_.store(true);
    const long long until = now_ns() + kHangMs * 1000000;
    bool hung = false;
    for (int role = 0; role < 4 && !hung; ++role) {
      if (role == 1) closing_.store(true);
      if (role == 2) idle_.store(true);
      while (left_[role].load() < counts_[role] && !(hung = now_ns() > until))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (auto& thread : threads) hung ? thread.second.detach() : thread.second.join();
    std::vector<Call> calls;
    for (auto& member : members_) member->part.collect(member->name, calls);
    std::string text = "[{\"count\":1,\"calls\":[";
    for (std::size_t k = 0; k < calls.size(); ++k) (text += k ? "," : "") += line(calls[k]);
    text += "]}]";
    if (hung) throw "\"hung\":true,\"histories\":" + text;
    return "\"histories\":" + text;
  }

 private:
  struct Member {
    std::string name;
    std::minstd_rand dice;
    Part part;
    std::deque<Op> ops;  // never moves what it holds: calls point into it
  };

  std::shared_ptr<Ledger> ledger_;
  long long ms_, runner_ms_, max_calls_;
  long long counts_[4];
  std::vector<std::unique_ptr<Member>> members_;
  std::atomic<bool> over_{false}, closing_{false}, idle_{false};
  std::atomic<long long> left_[4] = {}, total_{0};
  std::mutex mutex_;  // of the two queues below, between the crew's own members
  std::deque<std::string> todo_, recent_;

  static void pace() { std::this_thread::sleep_for(std::chrono::microseconds(300)); }

  Call& say(Member& me, Op op, const std::string& job = "") {
    total_.fetch_add(1, std::memory_order_relaxed);
    me.ops.push_back(std::move(op));
    return me.part.perform_op(*ledger_, me.ops.back(), job, me.name);
  }
  static Op op(Kind kind, const char* name) {
    Op made;
    made.kind = kind;
    made.name = name;
    return made;
  }
  static Op ending(End how, const std::string& text) {
    Op made = op(Kind::end, how == End::finish ? "finish" : how == End::fail ? "fail" : "timeout");
    made.how = how;
    made.text = text;
    return made;
  }
  std::string some_recent(Member& me, std::size_t among) {
    std::lock_guard<std::mutex> hold(mutex_);
    if (recent_.empty()) return "";
    std::size_t window = std::min(among, recent_.size());
    return recent_[recent_.size() - 1 - me.dice() % window];
  }

  void submit(Member& me) {
    for (long long count = 0; !over_.load() && total_.load() < max_calls_; ++count) {
      Op made = op(Kind::submit, "submit");
      made.task_id = me.name + "/" + std::to_string(count);
      made.payload = "payload " + made.task_id;
      const std::string job = say(me, made).issued;
      if (!job.empty()) {
        std::lock_guard<std::mutex> hold(mutex_);
        todo_.push_back(job);
        recent_.push_back(job);
        if (recent_.size() > 64) recent_.pop_front();
      }
      if (job.empty() || me.dice() % 8 == 0) pace();
    }
  }
  void work(Member& me) {
    for (;;) {
      std::string job;
      {
        std::lock_guard<std::mutex> hold(mutex_);
        if (!todo_.empty()) {
          job = todo_.front();
          todo_.pop_front();
        } else if (closing_.load()) {
          return;
        }
      }
      if (job.empty()) {
        pace();
        continue;
      }
      say(me, op(Kind::start, "start"), job);
      say(me, op(Kind::take, "take_request"), job);
      if (runner_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(runner_ms_));
      const unsigned lot = me.dice() % 10;
      if (lot < 8) say(me, ending(End::finish, "result of " + job), job);
      if (lot == 8) say(me, ending(End::fail, "error of " + job), job);
      if (lot == 9) say(me, ending(End::timeout, "timeout of " + job), job);
      if (lot == 0) say(me, ending(End::timeout, "late timeout of " + job), job);
    }
  }
  void poll(Member& me) {
    while (!idle_.load()) {
      say(me, op(Kind::depth, "depth"));
      const std::string job = some_recent(me, 64);
      if (!job.empty()) {
        say(me, op(Kind::snapshot, "snapshot"), job);
        say(me, op(Kind::result, "result"), job);
      }
      pace();
    }
  }
  void wait(Member& me) {
    while (!idle_.load()) {
      const std::string job = some_recent(me, 4);
      if (!job.empty()) {
        Op made = op(Kind::wait, "wait");
        made.budget_ms = 1000;
        say(me, made, job);
      }
      pace();
    }
  }
};

// ---- The loop ---------------------------------------------------------------------------------------

class Driver {
 public:
  Driver(std::string name, Factory factory, Options options)
      : name_(std::move(name)), factory_(std::move(factory)), options_(options) {
    configure(Limits{});
  }

  void hello() {
    std::string list = "\"lanes\",\"race\",\"race_setup\",\"stress\"";
    if (options_.driven_clock) list += ",\"clock\"";
    if (options_.completed_at) list += ",\"completed_at\"";
#if defined(__SANITIZE_THREAD__)
    list += ",\"tsan\"";
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    list += ",\"tsan\"";
#endif
#endif
    write("{\"hello\":{\"protocol\":1,\"name\":" + quoted(name_) + ",\"capabilities\":[" + list + "]}}");
  }

  void serve(const std::string& text) {
    const Json message = Parser(text).parse();
    const Json* lane = message.find("lane");
    if (!lane) return answer(message);
    auto& thread = lanes_[static_cast<long long>(lane->number)];
    if (!thread) thread = std::make_unique<Lane>();
    thread->add([this, message] { answer(message); });
  }

  // Lanes may be asleep in a wait for ever: leave without them.
  [[noreturn]] void leave(int status) {
    std::fflush(nullptr);
    if (lanes_.empty()) std::exit(status);
    std::_Exit(status);
  }

 private:
  std::string name_;
  Factory factory_;
  Options options_;
  Limits limits_;
  std::mutex mutex_;  // of ledger_ and now_ms_, which configure replaces
  std::shared_ptr<Ledger> ledger_;
  std::shared_ptr<std::atomic<long long>> now_ms_;
  std::mutex output_;
  std::map<long long, std::unique_ptr<Lane>> lanes_;

  void configure(const Limits& limits) {
    auto now = std::make_shared<std::atomic<long long>>(1000);
    Clock clock = [now] { return now->load(); };
    if (!options_.driven_clock) clock = [] { return now_ns() / 1000000; };
    std::shared_ptr<Ledger> made = factory_(limits, clock);
    std::lock_guard<std::mutex> hold(mutex_);
    limits_ = limits;
    now_ms_ = now;
    ledger_ = made;
  }
  std::shared_ptr<Ledger> ledger() {
    std::lock_guard<std::mutex> hold(mutex_);
    return ledger_;
  }

  void answer(const Json& message) {
    const std::string n = std::to_string(message.integer("n"));
    try {
      write("{\"n\":" + n + "," + reply_to(message) + "}");
    } catch (const std::string& last_words) {
      write("{\"n\":" + n + "," + last_words + "}");
      std::_Exit(0);
    } catch (const std::exception& error) {
      write("{\"n\":" + n + ",\"error\":" + quoted(error.what()) + "}");
    }
  }

  std::string reply_to(const Json& message) {
    const std::string name = message.text("op");
    if (name == "configure") {
      configure({message.integer("max_queue"), message.integer("job_ttl_ms"),
                 message.integer("max_completed")});
      return "\"ok\":true";
    }
    if (name == "advance" && options_.driven_clock) {
      std::lock_guard<std::mutex> hold(mutex_);
      now_ms_->fetch_add(message.integer("ms"));
      return "\"ok\":true";
    }
    if (name == "race")
      return Race(message).run([this](bool fresh) {
        if (fresh) configure(limits_);
        return ledger();
      });
    if (name == "stress") return Stress(ledger(), message).run();
    const auto op = read_op(message);
    if (!op) return "\"error\":" + quoted("no such operation: " + name);
    Call call;
    perform(*ledger(), *op, op->job, call);
    return call.reply;
  }

  void write(const std::string& text) {
    std::lock_guard<std::mutex> hold(output_);
    std::fwrite((text + "\n").data(), 1, text.size() + 1, stdout);
    std::fflush(stdout);
  }
};

}  // namespace detail

inline int drive(const std::string& name, const Factory& factory, Options options) {
  auto driver = std::make_unique<detail::Driver>(name, factory, options);
  driver->hello();
  std::string text;
  while (std::getline(std::cin, text)) {
    try {
      driver->serve(text);
    } catch (const std::exception& error) {
      std::cerr << "counterfoil driver: " << error.what() << ": " << text.substr(0, 200) << "\n";
      return 2;
    }
  }
  driver->leave(0);
}

}  // namespace counterfoil

#endif
