"""A peer, as a team would write it in an afternoon: FastAPI, uvicorn, a dict, a counter.

It validates the same body and answers the same 202. It is faster to write than to trust: the check
and the increment are two steps (D3), nothing is evicted, nothing times out.
"""

import asyncio
import socket
import uuid
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Header, HTTPException, Response
from pydantic import BaseModel, Field

MAX_QUEUE = 10**7

app = FastAPI()
jobs: dict[str, dict[str, Any]] = {}


class Submission(BaseModel):
    images: list[str] = Field(min_length=1)
    req_id: str = ""
    params: dict[str, Any] = {}
    options: dict[str, Any] = {}


@app.post("/jobs", status_code=202)
async def submit(
    body: Submission, response: Response, authorization: Annotated[str, Header()] = ""
) -> dict[str, str]:
    if authorization != "Bearer bench":
        raise HTTPException(401)
    if len(jobs) >= MAX_QUEUE:
        raise HTTPException(429)
    job_id = f"job_{uuid.uuid4().hex}"
    jobs[job_id] = {"state": "pending", "images": body.images, "req_id": body.req_id}
    response.headers["location"] = f"/jobs/{job_id}"
    return {
        "job_id": job_id,
        "state": "pending",
        "poll_url": f"/jobs/{job_id}",
        "result_url": f"/jobs/{job_id}/result",
    }


async def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False)
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    asyncio.run(main())
