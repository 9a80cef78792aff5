"""The one error tree. Each class is raised at one boundary.

    FactoryError
    ├── UserError           a person's input: exit code 2, one line
    │   └── UnknownField    a setting that there is not
    ├── GeneratorError      a generator could not make what it was asked for
    │   └── EndpointError   the language model that helps generators gave no answer
    │       └── BudgetSpent the run's requests or tokens for it are used up
    ├── SandboxError        the isolated machine failed (masked, never scored)
    │   ├── SandboxLost     it is gone: killed, out of memory, wedged shell
    │   └── ImageError      a backend cannot resolve or offer an image
    ├── VerifierError       the harness of a verifier failed (masked, never scored)
    │   └── VerifierTimeLimit
    ├── PolicyError         sampling failed (masked, never scored)
    │   └── StaleWeights    the engine samples from other weights than the learner's: training stops
    ├── TrainingStopped     the learner cannot go on: no finite updates
    ├── RegistryError       the store refused or failed
    │   ├── NotFound
    │   ├── Conflict        a compare-and-set or uniqueness rule refused the write
    │   ├── SplitViolation  the write would leak across a sealed split
    │   └── Excluded        the repository is one of an evaluation set
    └── InvalidTask         the task itself is broken: quarantine it

Every error pickles: the arguments given to the constructor are all there is.
"""

from __future__ import annotations


class FactoryError(Exception):
    """Root of every error that envfactory raises on purpose."""


class UserError(FactoryError, ValueError):
    """A person's mistake, told in one line: the field, the value, and what would be right."""

    def __init__(self, field: str, value: object, expected: str) -> None:
        super().__init__(field, value, expected)
        self.field, self.value, self.expected = field, value, expected

    def __str__(self) -> str:
        return f"{self.field}: {self.value!r} is not right; expected {self.expected}"


class UnknownField(UserError):
    """A setting of that name does not exist; `expected` says which do."""

    def __str__(self) -> str:
        return f"{self.field}: no such field; expected {self.expected}"


class GeneratorError(FactoryError):
    """A generator could not make what it was asked for."""


class EndpointError(GeneratorError):
    """The endpoint of the language model that helps generators gave no usable answer, or refused the request."""


class BudgetSpent(EndpointError):
    """The requests or tokens that a run may use of the endpoint are used up; what is cached is still answered."""


class SandboxError(FactoryError):
    """The isolated machine failed; an episode that meets it is masked."""


class SandboxLost(SandboxError):
    """The sandbox is gone: killed, out of memory as a whole, or its shell is wedged."""


class ImageError(SandboxError):
    """A backend cannot resolve an image, or the image lacks what it must offer."""


class VerifierError(FactoryError):
    """A verifier's own harness failed; the episode is masked, never scored."""


class VerifierTimeLimit(VerifierError):
    """The harness of a verifier ran past its own limit."""


class PolicyError(FactoryError):
    """Sampling from a policy failed; the episode is masked."""


class StaleWeights(PolicyError):
    """The engine samples from other weights than the learner holds; training on its samples would be wrong."""


class TrainingStopped(FactoryError):
    """The learner cannot go on: too many updates in a row had a loss or a gradient that was not finite."""


class RegistryError(FactoryError):
    """The store refused or failed."""


class NotFound(RegistryError):
    """Nothing in the registry has that name or digest."""


class Conflict(RegistryError):
    """A compare-and-set or a uniqueness rule refused the write."""


class SplitViolation(RegistryError):
    """The write would let content leak across a sealed split."""


class Excluded(RegistryError):
    """The task comes from a repository that evaluation sets are made of."""


class InvalidTask(FactoryError):
    """The task itself is broken and belongs in quarantine."""
