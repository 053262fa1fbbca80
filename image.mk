# make image  builds the image socratic-runner
# make image-test  builds it and runs it for real, with all that the documents show; needs a Docker engine
# DOCKER, DOCKER_HOST, DOCKER_BUILDKIT, IMAGE, BASE_IMAGE and IMAGE_OPTIONS (more options of docker build) are respected.

DOCKER ?= docker
IMAGE ?= socratic-runner
BASE_IMAGE ?= python:3.12-slim
IMAGE_OPTIONS ?=
# The older builder takes minutes for stages that nobody asked for, and leaves them lying about.
DOCKER_BUILDKIT ?= 1
export DOCKER BASE_IMAGE DOCKER_BUILDKIT

IMAGE_ENVIRONMENT = REVISION=$$(git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || echo unknown)

.PHONY: image image-test image-engine

image-engine:
	@$(DOCKER) version >/dev/null 2>&1 || { \
		echo "No Docker engine answers to '$(DOCKER) version'. Start one, or set DOCKER and DOCKER_HOST." >&2; \
		exit 1; }

# What had the name before is removed, if it has no other one. An engine that is set up without its default bridge builds on the host's network.
image: image-engine
	@network=default; $(DOCKER) network inspect bridge >/dev/null 2>&1 || network=host; \
	export $(IMAGE_ENVIRONMENT); \
	$(DOCKER) build --network=$$network --build-arg BASE_IMAGE --build-arg REVISION \
		$(IMAGE_OPTIONS) -t $(IMAGE) . && \
	$(DOCKER) image prune --force --filter dangling=true \
		--filter label=org.opencontainers.image.title=socratic-runner >/dev/null

# Under tags of its own, which are removed again.
image-test: image-engine $(VENV)/.dev
	@export $(IMAGE_ENVIRONMENT); $(BIN)/python -m pytest tests/image -m image -q
