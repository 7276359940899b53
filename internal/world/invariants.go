package world

// The invariants of a fleet of consumers, in the words in which a failure tells
// them. Those about confirmations of SQS do not hold while a fault makes SQS
// confirm what it has not done; "in calm" means that nothing fails but
// handlers. Fleets whose faults are worse may allow longer times than the words
// say, but no shorter ones.
const (
	NeverEarly         = "a consumer does not run a message before the time that a handler of its own has set"
	NeverEarlyAnywhere = "no consumer runs a message before the time until which SQS has confirmed to hide it"
	GivenUpForGood     = "a consumer does not run a message again that a handler of its own has called a permanent failure"
	DoneOnce           = "a consumer does not run a message again that a handler of its own has finished"
	OneAtATime         = "a consumer runs a message, and a FIFO group, once at a time"
	OneAnywhere        = "no two consumers run a message at once while both have a lease on it"
	Concurrency        = "no more handlers run at once than the concurrency permits"
	PausedIsPaused     = "no handler starts on a paused consumer"
	KnowsTheMessage    = "messages are run, copied and dead-lettered as they were sent"
	InOrder            = "no message of a FIFO group runs while an earlier one is in the queue"
	ContextsEnd        = "a handler's context ends with its lease and after its timeout, and says why it ends"

	Numbered1ToMax = "attempts are numbered from 1 to no more than MaxAttempts"
	NumbersGrow    = "an attempt's number is larger than those that have failed in the same process and were not followed by a delete"
	OnlyRunsCount  = "an attempt's number is at most the number of runs that count, or of those that fit into the time"
	PolicyDecides  = "an attempt is followed by the decision of the policy on its error"

	NoMoreThanRoom    = "a consumer holds no more messages than it has places for"
	OneConversation   = "there is one request about a message at a time"
	NewestHandle      = "a request names the newest receipt that its consumer has"
	LeavesOthersAlone = "the visibility of a message is not changed after the end of its lease"
	DeletesWhatIsDone = "a consumer deletes only messages whose work it has done or whose copy SQS has confirmed"
	HiddenFirst       = "a copy is sent when its original is hidden until the copy is due"
	Patience          = "a request that has failed is made again after a pause"

	SettledBySQS   = "SQS has confirmed, for the newest receipt, each settlement that a consumer reports"
	GoneIsGone     = "a message that a consumer reports as deleted is no longer in the queue"
	HiddenIsHidden = "a message that a consumer reports as hidden is hidden for the reported time, and a second more at most"
	HooksFollow    = "AfterDelete is called once for each message whose work is done, when SQS has confirmed its delete"
	NoLeaseIsLost  = "no lease is lost before two requests to renew it have failed"

	EveryOneCounted  = "each delivery is counted and reported, as a duplicate or with its outcome"
	NothingHeld      = "after a drain no message is held and no receive is under way"
	NothingLeased    = "in calm, no lease is left after a drain"
	NothingUnsettled = "in calm, messages that were finished in time are settled in time"
	FewCalls         = "in calm, the work to do bounds the number of calls"
	WithinBudget     = "Run returns within the stop budget"
	SaysHowItEnded   = "Run returns nil after a clean drain, otherwise ErrDrainTimeout"

	ProbesGoOn = "while an outage keeps messages from their handlers, one is started every two minutes at least"
	OutagesEnd = "ten minutes after an outage no breaker is open, half-open or ramping"

	NewOnesGoOn = "a new message is run within an hour when the faults have ended, whatever else is in the queue"

	ForgedAreIgnored = "a forged history does not count where histories are signed"

	NothingIsLost  = "each message is handled, or dead-lettered with its story"
	StoriesAreTrue = "a dead letter's story is true"
	NothingIsLeft  = "when the faults have ended, the queue is emptied"
)

// The invariants of the fleets in this loop alone.
const (
	NoLeaseIsLostInCalm = "in calm, no lease is lost"
	KillersEnd          = "a message that kills processes is given up after a few"
	NoSuspects          = "in calm, no message is suspected of killing its process"
	FewCopies           = "a message that waits is copied a few times in ten minutes at most"
	WorkGetsOn          = "after an outage, messages are handled at nearly the rate at which the dependency answers"
	NobodyWaits         = "in calm, no due message waits while a consumer has nothing to do"
)
