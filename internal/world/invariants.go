package world

// The invariants of a fleet of consumers, in the words in which a failure tells them. Those
// about what SQS has confirmed do not hold while it breaks its word on purpose; "in calm"
// is where nothing goes wrong but handlers. Fleets whose faults are worse may allow longer
// than the words say, and not less.
const (
	NeverEarly         = "a consumer does not run a message before the time that a handler of its own has set"
	NeverEarlyAnywhere = "nobody runs a message before the time until which SQS has confirmed to hide it"
	GivenUpForGood     = "a consumer does not run a message again that a handler of its own has called a permanent failure"
	DoneOnce           = "a consumer does not run a message again that a handler of its own has worked off"
	OneAtATime         = "a consumer runs a message, and a FIFO group, once at a time"
	OneAnywhere        = "no two consumers run a message at once while both have a lease on it"
	Concurrency        = "no more handlers run at once than the concurrency permits"
	PausedIsPaused     = "no handler starts on a paused consumer"
	KnowsTheMessage    = "what is run, copied and dead-lettered is what was sent"
	InOrder            = "no message of a FIFO group runs while an earlier one is in the queue"
	ContextsEnd        = "a handler's context ends with its lease and after its timeout, and says why it ends"

	Numbered1ToMax = "attempts are numbered from 1 to no more than MaxAttempts"
	NumbersGrow    = "an attempt's number is larger than those that have failed in the same process and were not followed by a delete"
	OnlyRunsCount  = "an attempt's number is at most the number of runs that count, or of those that fit into the time"
	PolicyDecides  = "what follows an attempt is what the policy says of its error"

	NoMoreThanRoom    = "a consumer holds no more messages than it has places for"
	OneConversation   = "there is one request about a message at a time"
	NewestHandle      = "a request names the newest receipt that its consumer has"
	LeavesOthersAlone = "the visibility of a message is not changed after the end of its lease"
	DeletesWhatIsDone = "a consumer deletes what it has done, and what SQS has confirmed a copy of"
	HiddenFirst       = "a copy is sent when its original is hidden until the copy is due"
	Patience          = "what has failed is tried again after a pause"

	SettledBySQS   = "what a consumer says is settled, SQS has confirmed for the newest receipt"
	GoneIsGone     = "what a consumer says is deleted is no longer in the queue"
	HiddenIsHidden = "what a consumer says is hidden is hidden as long as it says, and a second more at most"
	HooksFollow    = "AfterDelete is called once for what was worked off, when SQS has confirmed its delete"
	NoLeaseIsLost  = "no lease is lost before two requests to renew it have failed"

	EveryOneCounted  = "each delivery is counted, and told, as a duplicate or with what became of it"
	NothingHeld      = "nothing is held and nobody receives after a drain"
	NothingLeased    = "in calm, no lease is left after a drain"
	NothingUnsettled = "in calm, what was finished in time is settled in time"
	FewCalls         = "in calm, calls are bounded by what there is to do"
	WithinBudget     = "Run returns within the stop budget"
	SaysHowItEnded   = "Run returns nil after a clean drain, otherwise ErrDrainTimeout"

	ProbesGoOn = "while an outage keeps messages from their handlers, one is started every two minutes at least"
	OutagesEnd = "ten minutes after an outage no breaker is open, half-open or ramping"

	NewOnesGoOn = "a new message is run within an hour when the faults have ended, whatever else is in the queue"

	NothingIsLost  = "each message is handled, or dead-lettered with its story"
	StoriesAreTrue = "a dead letter's story is true"
	NothingIsLeft  = "when the faults have ended, the queue is worked off"
)

// Those of fleets in this loop alone.
const (
	NoLeaseIsLostInCalm = "in calm, no lease is lost"
	ForgedAreIgnored    = "a forged history does not count where histories are signed"
	KillersEnd          = "a message that kills processes is given up after a few"
	NoSuspects          = "in calm, no message is suspected of killing its process"
	FewCopies           = "a message that waits is copied a few times in ten minutes at most"
	WorkGetsOn          = "after an outage, work gets on at nearly the rate at which the dependency answers"
	NobodyWaits         = "in calm, no due message waits while a consumer has nothing to do"
)
