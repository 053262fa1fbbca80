"""The errors that the service names, as the emulator raises them inside itself."""


class ServiceError(Exception):
    """An answer other than 200: status, name, message, advice to wait, and further fields."""

    def __init__(
        self,
        status: int,
        name: str,
        message: str,
        *,
        retry_after_ms: float | None = None,
        details: dict[str, int | str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.message = message
        self.retry_after_ms = retry_after_ms
        self.details = details or {}


def invalid(message: str) -> ServiceError:
    return ServiceError(400, "ValidationException", message)


def unknown_resource(message: str) -> ServiceError:
    return ServiceError(404, "ResourceNotFoundException", message)


def unknown_operation(message: str = "The operation is not known here.") -> ServiceError:
    return ServiceError(404, "UnknownOperationException", message)
