package emulator

import (
	"fmt"
	"time"
)

// line logs what the process has written.
func (i *instance) line(text string) {
	id := ""
	i.pool.mu.Lock()
	var during []*invocation
	for _, inv := range i.active {
		if !inv.taken.IsZero() {
			during = append(during, inv)
			inv.tail.add(text)
		}
	}
	i.pool.mu.Unlock()
	if len(during) == 1 {
		id = during[0].id
	}
	i.log(SourceFunction, id, text)
}

// say logs a line of Lambda about inv.
func (i *instance) say(inv *invocation, text string) {
	i.pool.mu.Lock()
	inv.tail.add(text)
	i.pool.mu.Unlock()
	i.log(SourcePlatform, inv.id, text)
}

func (i *instance) log(source Source, id, text string) {
	i.pool.lambda.cfg.Log(Line{
		Time: time.Now(), Function: i.pool.function.Name, RequestID: id,
		Instance: i.number, Source: source, Text: text,
	})
}

// timestamp is Lambda's format of times in logs and records.
const timestamp = "2006-01-02T15:04:05.000Z"

// report logs Lambda's REPORT line after an invoke. Memory is not measured and not reported.
func (i *instance) report(inv *invocation, now time.Time) {
	took := now.Sub(inv.taken)
	text := fmt.Sprintf("REPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %d ms\tMemory Size: %d MB",
		inv.id, milliseconds(took), (took+inv.cold+time.Millisecond-1)/time.Millisecond, i.pool.function.MemorySize)
	if inv.cold > 0 {
		text += fmt.Sprintf("\tInit Duration: %.2f ms", milliseconds(inv.cold))
	}
	if inv.failure == failureTimeout {
		i.say(inv, fmt.Sprintf("%s %s %s", now.UTC().Format(timestamp), inv.id, i.timeoutText()))
	}
	i.say(inv, "END RequestId: "+inv.id)
	i.say(inv, text+status(inv))
}

// reportInit logs the end of an instance that ended before it took inv.
func (i *instance) reportInit(inv *invocation, now time.Time) {
	i.say(inv, fmt.Sprintf("INIT_REPORT Init Duration: %.2f ms\tPhase: init", milliseconds(now.Sub(i.begun)))+status(inv))
}

func status(inv *invocation) string {
	switch inv.failure {
	case "":
		return ""
	case failureTimeout:
		return "\tStatus: timeout"
	}
	return "\tStatus: error\tError Type: " + inv.failure
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
