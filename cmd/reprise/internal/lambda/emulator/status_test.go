package emulator_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	lambdaclient "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// TestStatus: an event that waits for its retry is seen with its error and the time of the retry, and what has
// ended is counted, also by a new form of the function.
func TestStatus(t *testing.T) {
	t.Parallel()
	f := self(t, "f")
	l, _ := open(t, emulator.Config{Functions: []emulator.Function{f}, TimeScale: 60}) // AWS's minute in a second
	await := func(what string, is func(emulator.FunctionStatus) bool) emulator.FunctionStatus {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			all := l.Status()
			if len(all) != 1 || all[0].Name != "f" || all[0].ARN != "arn:aws:lambda:us-east-1:000000000000:function:f" {
				t.Fatalf("the status is %+v", all)
			}
			if is(all[0]) {
				return all[0]
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s does not come: %+v", what, all[0])
			}
		}
	}
	idle := await("an idle function", func(s emulator.FunctionStatus) bool { return true })
	if idle.Invokes != 0 || idle.Events != 0 || idle.Instances != 0 {
		t.Errorf("at first it is %+v", idle)
	}
	client := sdk(serve(t, l))
	out, err := client.Invoke(t.Context(), &lambdaclient.InvokeInput{
		FunctionName: aws.String("f"), InvocationType: types.InvocationTypeEvent, Payload: encode(t, order{Do: "fail", Text: "no stock"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	waits := await("an event that waits", func(s emulator.FunctionStatus) bool { return s.Events == 1 && !s.Next[0].Due.IsZero() })
	if e := waits.Next[0]; e.ID != requestID(out.ResultMetadata) || e.Invokes != 1 || e.Error != "refusal: no stock" || e.Due.Sub(e.Accepted) < time.Second/2 {
		t.Errorf("the event that waits is %+v", e)
	}
	if waits.Invokes != 1 || waits.Failed != 1 || waits.Instances != 1 {
		t.Errorf("meanwhile it is %+v", waits)
	}
	if err := l.Replace(f); err != nil {
		t.Fatal(err)
	}
	ended := await("the end of the event", func(s emulator.FunctionStatus) bool { return s.Events == 0 })
	if ended.Invokes != 3 || ended.Failed != 3 {
		t.Errorf("at the end it is %+v, want 3 failed invokes", ended)
	}
	if _, err := l.Invoke(t.Context(), "f", encode(t, order{Do: "echo"})); err != nil {
		t.Fatal(err)
	}
	if s := await("another invoke", func(s emulator.FunctionStatus) bool { return s.Invokes == 4 }); s.Failed != 3 {
		t.Errorf("after a success it is %+v", s)
	}
}
