package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// operate runs operators' commands, one after the other, until ctx ends.
func (c *crowd) operate(ctx context.Context, random *rand.Rand) {
	acts := []func(*rand.Rand){
		func(*rand.Rand) { c.command("peek", crowdOrders, "--hidden", "--limit", "50") },
		func(*rand.Rand) { c.command("peek", crowdJobs, "-o", "json") },
		func(*rand.Rand) { c.command("search", crowdLetters, "--where", "n=3", "--yes") },
		func(*rand.Rand) { c.command("queues") },
		func(*rand.Rand) { c.command("dead", crowdDead) },
		func(random *rand.Rand) { c.command("redrive", crowdDead, "--limit", strconv.Itoa(1+random.IntN(50))) },
		func(random *rand.Rand) {
			c.command("move", crowdLetters, crowdSide, "--where", "n="+strconv.Itoa(random.IntN(10)), "--limit", "20", "--yes")
		},
		func(*rand.Rand) { c.command("move", crowdSide, crowdLetters, "--yes") },
		c.sendByCommand, c.backUp, c.purge, c.tag, c.configure,
	}
	order := random.Perm(len(acts)) // each once, and then at random
	for i := 0; pausedFor(ctx, time.Duration(random.Int64N(int64(8*c.pause)))) && !c.t.Failed(); i++ {
		next := random.IntN(len(acts))
		if i < len(order) {
			next = order[i]
		}
		acts[next](random)
	}
}

// command runs a command of an operator to its end.
func (c *crowd) command(args ...string) crowdCommand {
	if args[0] != "backup" && args[0] != "check" {
		args = append(args, "--endpoint", "http://"+c.addr)
	}
	cmd := exec.Command(c.program, args...)
	cmd.Env = environment()
	done := crowdCommand{args: args, asked: time.Now().UnixNano()}
	text, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		c.t.Error(err)
	}
	done.code, done.output, done.told = cmd.ProcessState.ExitCode(), string(text), time.Now().UnixNano()
	c.note(func() {
		c.commands = append(c.commands, done)
		c.counts["command "+args[0]]++
	})
	return done
}

// sendByCommand sends letters. The command sends again what is not acknowledged, and prints no ids.
func (c *crowd) sendByCommand(random *rand.Rand) {
	var bodies []string
	for range 1 + random.IntN(15) {
		c.operated++
		bodies = append(bodies, fmt.Sprintf(`{"key":"operator-%d","n":%d}`, c.operated, c.operated%10))
	}
	done := c.command(append([]string{"send", crowdLetters, "--attribute", "tenant=acme"}, bodies...)...)
	for _, body := range bodies {
		x := &crowdExchange{client: "operator", action: "SendMessage", queue: crowdLetters, asked: done.asked, told: done.told, repeats: true, input: &crowdInput{
			MessageBody: body, MessageAttributes: map[string]crowdAttribute{"tenant": {DataType: "String", StringValue: "acme"}},
		}}
		if done.code == 0 {
			x.reply = &crowdReply{}
		}
		c.note(func() { c.byCommand = append(c.byCommand, x) })
	}
}

// backUp copies the data while the server is at work, or when it is not, and checks the copy.
func (c *crowd) backUp(*rand.Rand) {
	copied := filepath.Join(c.dir, "backup")
	defer os.RemoveAll(copied)
	if c.command("backup", "--data", c.data, copied).code != 0 {
		return
	}
	if checked := c.command("check", copied); checked.code != 0 {
		c.t.Errorf("a backup is not sound: %s", checked.output)
	}
}

// purge empties a queue that the clients do not use, and finds it empty.
func (c *crowd) purge(*rand.Rand) {
	sent := c.command("send", crowdBin, "a", "b", "c")
	purged := c.command("purge", crowdBin, "--yes")
	left := c.command("queues", crowdBin, "-o", "json")
	var queue struct{ Visible int }
	if sent.code != 0 || purged.code != 0 || left.code != 0 {
		return
	}
	if err := json.Unmarshal([]byte(left.output), &queue); err != nil || queue.Visible != 0 {
		c.t.Errorf("after its purge a queue has %d messages, %v:\n%s", queue.Visible, err, left.output)
	}
	c.count("purges that were verified")
}

// crowdValue is a value that only one client writes. When a write is acknowledged, later reads have it, or one that was
// tried after it.
type crowdValue struct {
	permitted []string // the first value or the one that was acknowledged last, and those tried since
	written   int
}

// change writes a new value and reads it.
func (v *crowdValue) change(c *crowd, name string, write func(value string) error, read func() (string, error)) {
	v.written++
	value := strconv.Itoa(v.written)
	v.permitted = append(v.permitted, value)
	if write(value) == nil {
		v.permitted = []string{value}
	}
	got, err := read()
	if err != nil {
		return
	}
	for _, p := range v.permitted {
		if got == p {
			c.count(name + " read")
			return
		}
	}
	c.t.Errorf("the %s of %s is %q, want one of %q", name, crowdBin, got, v.permitted)
}

func (c *crowd) tag(*rand.Rand) {
	url := c.url(crowdBin)
	c.round.change(c, "tag", func(value string) error {
		_, err := c.sdk.TagQueue(c.t.Context(), &sqs.TagQueueInput{QueueUrl: &url, Tags: map[string]string{"round": value}})
		return err
	}, func() (string, error) {
		out, err := c.sdk.ListQueueTags(c.t.Context(), &sqs.ListQueueTagsInput{QueueUrl: &url})
		if err != nil {
			return "", err
		}
		return out.Tags["round"], nil
	})
}

func (c *crowd) configure(*rand.Rand) {
	url := c.url(crowdBin)
	c.timeout.change(c, "attribute", func(value string) error {
		_, err := c.sdk.SetQueueAttributes(c.t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"VisibilityTimeout": value}})
		return err
	}, func() (string, error) {
		out, err := c.sdk.GetQueueAttributes(c.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"VisibilityTimeout"}})
		if err != nil {
			return "", err
		}
		return out.Attributes["VisibilityTimeout"], nil
	})
}
