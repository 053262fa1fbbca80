# What start-up is measured against: the SDK as it comes, and nothing else.
ARG BASE_IMAGE=python:3.12-slim
FROM ${BASE_IMAGE}
COPY requirements.txt ./
RUN python -m pip install --quiet --no-cache-dir --require-hashes --only-binary=:all: -r requirements.txt
ENTRYPOINT ["python", "-c"]
