// A small job ledger in C++ and, chosen by the first word of the command line, ways to be another
// one: `ledger` alone is correct, `ledger d3` has that seeded fault, `ledger ok-...` is correct in
// another way than ours. The tests put all of them under the kit: the faulty must be found, the
// correct never accused.
//
// The design is the one the contract describes: an atomic state per job, one mutex per job for the
// rest and for the wake-up, an atomic depth with a compare-and-swap admission, a table mutex for the
// id map and the order of completion.
#include "../../drivers/cpp/counterfoil_driver.hpp"

#include <cstring>
#include <unordered_map>

using counterfoil::Clock;
using counterfoil::End;
using counterfoil::Limits;
using counterfoil::Result;
using counterfoil::Snapshot;
using counterfoil::Taken;

namespace {

std::string chosen = "correct";
bool is(const char* name) { return chosen == name; }

enum State { pending, running, done, failed, timeout };
const char* const kNames[] = {"pending", "running", "done", "failed", "timeout"};
bool terminal(int state) { return state >= done; }

struct Job {
  std::string id, task_id, payload;
  bool taken = false;
  long long submitted_at = 0;
  std::atomic<int> state{pending};
  std::mutex mutex;  // of everything below, and of the wake-up
  std::condition_variable woken;
  std::string result, error;
  long long completed_at = -1, started_at = 0;
  long long used = 0;  // ok-last-use
  bool consumed = false;
};
using JobPtr = std::shared_ptr<Job>;

class Table : public counterfoil::Ledger {
 public:
  Table(const Limits& limits, Clock clock) : limits_(limits), clock_(std::move(clock)) {}

  std::optional<std::string> submit(const std::string& task_id, const std::string& payload) override {
    if (!admit()) {
      if (is("ok-refused-sweeps")) sweep();
      if (is("refused-leaves-depth")) depth_.fetch_add(1);
      if (is("refused-evicts-all")) {
        std::lock_guard<std::mutex> hold(table_);
        while (!ended_.empty()) evict(ended_.begin());
      }
      return std::nullopt;
    }
    auto job = std::make_shared<Job>();
    job->task_id = task_id;
    job->payload = payload;
    job->submitted_at = clock_();
    {
      std::lock_guard<std::mutex> hold(table_);
      long long number = ++issued_;
      if (is("id-wraps")) number %= 7;
      job->id = is("id-is-task") ? task_id : "job_" + std::to_string(number);
      if (is("id-reused") && !free_.empty()) job->id = free_.back(), free_.pop_back();
      if (!is("id-late")) jobs_[job->id] = job;
      if (is("d5") || is("ok-submission-order")) order_.push_back(job);
    }
    sweep();
    if (is("id-late")) {
      std::lock_guard<std::mutex> hold(table_);
      late_.push_back(job);
      if (late_.size() > 1) jobs_[late_.front()->id] = late_.front(), late_.pop_front();
    }
    return job->id;
  }

  bool start(const std::string& id) override {
    JobPtr job = find(id);
    if (!job) return is("unknown-accepted");
    std::lock_guard<std::mutex> hold(job->mutex);
    if (is("start-check-then-act")) {
      if (job->state.load() != pending) return false;
      job->mutex.unlock();
      std::this_thread::yield();
      job->mutex.lock();
      if (!terminal(job->state.load())) job->state.store(running);
      return true;
    }
    if (is("restart") && job->state.load() == running) return true;
    if (is("start-revives") && terminal(job->state.load())) return job->state.store(running), true;
    if (job->state.load() != pending) return false;
    job->started_at = clock_();
    job->state.store(running);
    if (is("wake-on-start")) job->woken.notify_all(), started_ = true;
    return true;
  }

  bool end(const std::string& id, End how, const std::string& text) override {
    JobPtr job = find(id);
    if (!job) return is("unknown-accepted");
    if (is("revive-evicted")) lost_[id] = job;
    const int state = how == End::finish ? done : how == End::fail ? failed : timeout;
    if (is("end-needs-running") && job->state.load() == pending) return false;
    if (is("d1")) return end_torn(*job, state, text);
    if (is("d4")) return end_notifying_apart(job, state, text);
    if (is("end-check-then-act")) {
      if (terminal(job->state.load())) return false;
      std::this_thread::yield();
    }
    {
      std::lock_guard<std::mutex> hold(job->mutex);
      if (terminal(job->state.load()) && !is("end-check-then-act")) {
        if (is("double-decrement")) depth_.fetch_sub(1);
        if (is("error-overwritten") && how != End::finish) job->error = text;
        if (is("result-overwritten") && how == End::finish) job->result = text;
        if (is("completed-rewritten")) job->completed_at = clock_();
        if (is("last-writer-wins")) {
          write(*job, state, text);
          return false;
        }
        if (is("end-twice-accepted")) return true;
        return false;
      }
      write(*job, state, text);
      record(job);
      release(*job, state);
      notify(*job, state);
    }
    if (is("evict-at-end")) sweep();
    return true;
  }

  std::optional<Taken> take_request(const std::string& id) override {
    JobPtr job = find(id);
    if (!job) return std::nullopt;
    std::unique_lock<std::mutex> hold(job->mutex, std::defer_lock);
    if (!is("take-unlocked")) hold.lock();
    if (job->taken && !is("payload-twice")) return Taken{is("task-id-lost") ? "" : job->task_id, {}};
    if (is("take-unlocked")) std::this_thread::yield();
    job->taken = true;
    Taken taken{job->task_id, job->payload};
    if (is("task-id-moved")) job->task_id.clear();
    if (!is("payload-twice")) job->payload.clear();
    return taken;
  }

  std::optional<Snapshot> snapshot(const std::string& id) override {
    if (is("evict-by-read")) sweep();
    JobPtr job = find(id);
    if (!job) return std::nullopt;
    return view(*job);
  }

  std::optional<Result> result(const std::string& id) override {
    JobPtr job = find(id);
    if (!job) return std::nullopt;
    std::unique_lock<std::mutex> hold(job->mutex, std::defer_lock);
    if (!is("d1")) hold.lock();
    const int state = job->state.load();
    if (state != done && !(is("result-of-failed") && state == failed))
      return Result{false, "", "", kNames[state]};
    if (is("result-not-done-first") && !job->consumed)
      return job->consumed = true, Result{false, "", "", "running"};
    if (is("result-consumed")) {
      if (job->consumed) return Result{true, job->task_id, "", ""};
      job->consumed = true;
    }
    if (is("result-gone-after-read")) {
      if (job->consumed) return std::nullopt;
      job->consumed = true;
    }
    if (is("result-of-last")) return Result{true, job->task_id, last_result(), ""};
    return Result{true, is("result-without-task") ? "" : job->task_id, job->result, ""};
  }

  std::optional<Snapshot> wait(const std::string& id, long long budget_ms) override {
    JobPtr job = find(id);
    auto budget = std::chrono::milliseconds(budget_ms);
    if (!job) {
      if (is("wait-unknown-blocks")) std::this_thread::sleep_for(budget);
      return std::nullopt;
    }
    if (is("d4")) return wait_on_another_mutex(*job, budget);
    if (is("wait-misses-terminal")) {
      std::unique_lock<std::mutex> hold(job->mutex);
      job->woken.wait_for(hold, budget);
      return view_locked(*job);
    }
    if (is("wait-looks-up-again")) {
      const auto until = std::chrono::steady_clock::now() + budget;
      for (;;) {
        JobPtr again = find(id);
        if (again && terminal(again->state.load())) return view(*again);
        if (std::chrono::steady_clock::now() > until) return again ? view(*again) : view(*job);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
    if (is("wait-polls")) {
      const auto until = std::chrono::steady_clock::now() + budget;
      while (!terminal(job->state.load()) && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::min(budget, std::chrono::milliseconds(700)));
      return view(*job);
    }
    std::unique_lock<std::mutex> hold(job->mutex);
    auto over = [&] { return terminal(job->state.load()) || (is("wake-on-start") && started_); };
    if (is("wait-ignores-budget")) budget = std::chrono::hours(1);
    if (is("wait-budget-tenfold")) budget *= 10;
    if (is("wait-budget-half")) budget /= 2;
    const bool ended = job->woken.wait_for(hold, budget, over);
    if (!ended && is("wait-fails-the-job")) {
      write(*job, timeout, "the wait ran out");
      record(job);
      release(*job, timeout);
    }
    if (is("wait-tells-pending") && !ended) return Snapshot{"pending", "", job->submitted_at, {}};
    return view_locked(*job);
  }

  long long depth() override {
    if (is("d2")) return plain_depth_;
    const long long now = depth_.load();
    if (is("depth-counts-retained")) {
      std::lock_guard<std::mutex> hold(table_);
      return now + static_cast<long long>(ended_.size());
    }
    return now;
  }

 private:
  const Limits limits_;
  const Clock clock_;
  std::atomic<long long> depth_{0};
  long long plain_depth_ = 0;
  std::mutex other_;  // d4
  std::mutex table_;  // of all below; taken before a job's mutex, never after
  std::unordered_map<std::string, JobPtr> jobs_;
  std::mutex queue_;  // of `fresh_`, the completions a sweep has still to see; taken last of all
  std::deque<JobPtr> fresh_;
  std::deque<JobPtr> ended_;  // in order of completion
  std::deque<JobPtr> order_, late_;
  std::vector<std::string> free_;
  std::map<std::string, JobPtr> lost_;
  long long issued_ = 0, uses_ = 0;
  std::atomic<bool> started_{false};

  bool admit() {
    long long bound = limits_.max_queue;
    if (is("admit-one-more")) ++bound;
    if (is("admit-one-less") && bound > 1) --bound;
    if (is("zero-is-unbounded") && bound <= 0) bound = 1000;
    if (is("d2")) {
      if (plain_depth_ >= bound) return false;
      ++plain_depth_;
      return true;
    }
    if (is("d3")) {
      if (depth_.load() >= bound) return false;
      depth_.fetch_add(1);
      return true;
    }
    if (is("increment-then-check")) {  // a burst of refusals fills the queue with nobody
      if (depth_.fetch_add(1) < bound) return true;
      depth_.fetch_sub(1);
      return false;
    }
    long long now = depth_.load();
    do {
      if (now >= bound) return false;
    } while (!depth_.compare_exchange_weak(now, now + 1));
    return true;
  }

  JobPtr find(const std::string& id) {
    std::lock_guard<std::mutex> hold(table_);
    auto at = jobs_.find(id);
    if (at == jobs_.end()) {
      auto lost = lost_.find(id);
      return lost == lost_.end() ? nullptr : lost->second;
    }
    if (is("ok-last-use")) at->second->used = ++uses_;
    return at->second;
  }

  // The caller holds the job's mutex.
  void write(Job& job, int state, const std::string& text) {
    job.completed_at = clock_();
    if (is("completed-early")) job.completed_at = job.submitted_at;
    if (is("completed-before")) job.completed_at = job.submitted_at - 1;
    if (is("completed-unset")) job.completed_at = -1;
    (state == done ? job.result : job.error) = text;
    if (is("error-empty-on-timeout") && state == timeout) job.error.clear();
    if (is("error-on-done") && state == done) job.error = "none";
    if (is("failed-is-done") && state == failed) state = done;
    job.state.store(state);
    if (is("result-of-last") && state == done) {
      std::lock_guard<std::mutex> hold(queue_);
      last_result_ = text;
    }
  }
  std::string last_result_;
  std::string last_result() {
    std::lock_guard<std::mutex> hold(queue_);
    return last_result_;
  }

  void record(const JobPtr& job) {
    if (is("forget-failed") && job->state.load() == failed) return;
    if (is("forget-pending") && job->started_at == 0) return;
    std::lock_guard<std::mutex> hold(queue_);
    fresh_.push_back(job);
  }

  void release(Job& job, int state) {
    if (is("leak-on-timeout") && state == timeout) return;
    if (is("leak-on-fail") && state == failed) return;
    if (is("leak-when-pending") && job.started_at == 0) return;
    if (is("d2")) {
      --plain_depth_;
      return;
    }
    depth_.fetch_sub(1);
  }

  void notify(Job& job, int state) {
    if (is("wake-one")) return job.woken.notify_one();
    if (is("wake-none-on-timeout") && state == timeout) return;
    if (is("wake-none-when-pending") && job.started_at == 0) return;
    job.woken.notify_all();
  }

  Snapshot view(Job& job) {
    if (is("d1")) return view_locked(job);
    std::lock_guard<std::mutex> hold(job.mutex);
    return view_locked(job);
  }
  Snapshot view_locked(Job& job) {
    const int state = job.state.load();
    Snapshot seen{kNames[state], terminal(state) ? job.error : "", job.submitted_at, {}};
    if (is("state-unknown-word") && state == running) seen.state = "active";
    if (is("born-running") && state == pending) seen.state = "running";
    if (is("d1")) seen.error = job.error;
    if (job.completed_at >= 0) seen.completed_at = job.completed_at;
    return seen;
  }

  // d1: published before it is written, and read without the lock.
  bool end_torn(Job& job, int state, const std::string& text) {
    std::lock_guard<std::mutex> hold(job.mutex);
    if (terminal(job.state.load())) return false;
    job.state.store(state);
    depth_.fetch_sub(1);
    job.completed_at = clock_();
    (state == done ? job.result : job.error) = text;
    {
      std::lock_guard<std::mutex> queue(queue_);
      for (auto& item : jobs_)
        if (item.second.get() == &job) fresh_.push_back(item.second);
    }
    job.woken.notify_all();
    return true;
  }

  // d4: the state is published under one mutex, the waiters are notified under another.
  bool end_notifying_apart(const JobPtr& job, int state, const std::string& text) {
    {
      std::lock_guard<std::mutex> hold(job->mutex);
      if (terminal(job->state.load())) return false;
      write(*job, state, text);
      record(job);
      release(*job, state);
    }
    job->woken.notify_all();
    return true;
  }
  Snapshot wait_on_another_mutex(Job& job, std::chrono::milliseconds budget) {
    const auto until = std::chrono::steady_clock::now() + budget;
    std::unique_lock<std::mutex> hold(other_);
    while (!terminal(job.state.load()))
      if (job.woken.wait_until(hold, until) == std::cv_status::timeout) break;
    return view(job);
  }

  void sweep() {
    std::lock_guard<std::mutex> hold(table_);
    {
      std::lock_guard<std::mutex> queue(queue_);
      for (auto& job : fresh_) ended_.push_back(job);
      fresh_.clear();
    }
    const long long now = clock_();
    if (!is("no-ttl"))
      for (auto at = ended_.begin(); at != ended_.end();) {
        const Job& job = **at;
        long long since = job.completed_at;
        if (is("ttl-from-submission")) since = job.submitted_at;
        const long long age = now - since;
        const bool old = is("ttl-inclusive") ? age >= limits_.job_ttl_ms
                         : is("ttl-one-late") ? age > limits_.job_ttl_ms + 1
                                              : age > limits_.job_ttl_ms;
        at = old ? evict(at) : at + 1;
      }
    if (is("ttl-evicts-live"))
      for (auto at = jobs_.begin(); at != jobs_.end();)
        at = now - at->second->submitted_at > limits_.job_ttl_ms ? jobs_.erase(at) : std::next(at);
    long long keep = std::max(limits_.max_completed, 0LL);
    if (is("keep-one-more")) ++keep;
    if (is("keep-one-less") && keep > 0) --keep;
    if (is("zero-keeps-all") && keep == 0) keep = 1000;
    if (is("no-count")) return;
    if (is("d5")) return sweep_by_submission(keep, true);
    if (is("ok-submission-order")) return sweep_by_submission(keep, false);
    if (is("evict-live") && static_cast<long long>(jobs_.size()) > keep + 1) {
      jobs_.erase(jobs_.begin());
      return;
    }
    while (static_cast<long long>(ended_.size()) > keep) {
      auto victim = ended_.begin();
      if (is("evict-newest")) victim = ended_.end() - 1;
      if (is("evict-second")) victim = ended_.begin() + (ended_.size() > 1 ? 1 : 0);
      if (is("ok-last-use"))
        victim = std::min_element(ended_.begin(), ended_.end(), [](const JobPtr& a, const JobPtr& b) {
          return a->used < b->used;
        });
      evict(victim);
      if (is("evict-one-per-submit")) break;
      if (is("evict-all-at-once")) keep = 0;
    }
  }

  // The order of submission: `losing` drops jobs that still run when they are the oldest (d5).
  void sweep_by_submission(long long keep, bool losing) {
    long long excess = 0;
    if (losing) {
      excess = static_cast<long long>(order_.size()) - keep;
      while (excess-- > 0) {
        JobPtr job = order_.front();
        order_.pop_front();
        if (terminal(job->state.load())) jobs_.erase(job->id);
      }
      return;
    }
    for (auto& job : order_) excess += terminal(job->state.load());
    excess -= keep;
    for (auto at = order_.begin(); at != order_.end() && excess > 0;) {
      if (!terminal((*at)->state.load())) {
        ++at;
        continue;
      }
      jobs_.erase((*at)->id);
      drop(ended_, *at);  // which may have ended after this sweep took stock
      at = order_.erase(at);
      --excess;
    }
  }

  static void drop(std::deque<JobPtr>& from, const JobPtr& job) {
    auto at = std::find(from.begin(), from.end(), job);
    if (at != from.end()) from.erase(at);
  }

  std::deque<JobPtr>::iterator evict(std::deque<JobPtr>::iterator at) {
    if (is("ok-submission-order")) drop(order_, *at);
    if (is("id-reused")) free_.push_back((*at)->id);
    jobs_.erase((*at)->id);
    return ended_.erase(at);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) chosen = argv[1];
  counterfoil::Options options;
  options.driven_clock = !is("ok-own-clock");
  options.completed_at = !is("ok-no-completed-at");
  return counterfoil::drive(chosen, [](const Limits& limits, const Clock& clock) {
    return std::make_unique<Table>(limits, clock);
  }, options);
}
