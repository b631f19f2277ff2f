"""The shipped model on real pictures: held-out digits as PNG files, through the whole server."""

import base64
import io

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits


def picture(values, *, kind="PNG", size=None):
    """A digit of the data set (0..16) as a picture in base64."""
    image = Image.fromarray(np.rint(values * 255 / 16).astype(np.uint8))
    if size:
        image = image.resize(size, Image.Resampling.NEAREST)
    file = io.BytesIO()
    image.save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


@pytest.fixture(scope="module")
def held_out():
    """The quarter that the training script did not look at."""
    digits = load_digits()
    chosen = np.arange(len(digits.images)) % 4 == 0
    return digits.images[chosen], digits.target[chosen]


def labels(client, images):
    job_id = client.send("POST", "/jobs", {"images": images}).json["job_id"]
    assert client.ended(job_id)["state"] == "done"
    envelope = client.get(f"/jobs/{job_id}/result").json
    assert envelope["model"] == {"name": "digits", "version": "1"}
    return [item["data"]["label"] for item in envelope["results"]]


def test_more_than_97_in_100_held_out_digits_are_read_right(serve, held_out):
    client = serve(model="digits", max_images=500)
    images, targets = held_out
    read = labels(client, [picture(image) for image in images])
    right = sum(int(label) == target for label, target in zip(read, targets, strict=True))
    assert len(targets) == 450
    assert right / len(targets) > 0.97


@pytest.mark.parametrize(
    ("kind", "size"), [("JPEG", (64, 64)), ("PNG", (200, 200)), ("BMP", None), ("WEBP", (32, 32))]
)
def test_pictures_of_other_kinds_and_sizes_are_read_too(serve, held_out, kind, size):
    client = serve(model="digits")
    images, targets = held_out
    read = labels(client, [picture(image, kind=kind, size=size) for image in images[:20]])
    right = sum(int(label) == target for label, target in zip(read, targets, strict=False))
    assert right >= 18


def test_an_answer_is_a_label_a_score_and_the_runners_up(serve, held_out):
    client = serve(model="digits")
    body = client.send("POST", "/infer", {"images": [picture(held_out[0][0])]}).json
    data = body["results"][0]["data"]
    assert data["top"][0]["label"] == data["label"]
    scores = [one["score"] for one in data["top"]]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True) and scores[0] <= 1


def test_what_is_no_picture_fails_alone(serve, held_out):
    client = serve(model="digits", max_pixels=10_000)
    good = picture(held_out[0][0])
    bomb = picture(np.zeros((8, 8)), size=(101, 100))
    cut = base64.b64encode(base64.b64decode(good)[:40]).decode()
    images = [good, "!!", base64.b64encode(b"GIF89a").decode(), bomb, cut, good]
    body = client.send("POST", "/infer", {"images": images}).json
    assert [item["status"] for item in body["results"]] == [0, 1, 1, 1, 1, 0]
    assert body["partial"] is True
    messages = [fault["message"] for fault in body["errors"]]
    assert "base64" in messages[0] and "format" in messages[1] and "pixels" in messages[2]


def test_a_decompression_bomb_is_refused_before_it_is_decoded(serve):
    client = serve(model="digits")
    file = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(file, "PNG")
    assert len(file.getvalue()) < 100_000, "a small file that claims 400 million pixels"
    body = {"images": [base64.b64encode(file.getvalue()).decode()]}
    answer = client.send("POST", "/infer", body).json
    assert answer["status"] == 1 and "pixels" in answer["errors"][0]["message"]
