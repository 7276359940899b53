package sqsserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// faultForm is the text form of a Fault: in JSON, and in YAML.
type faultForm struct {
	Kind        FaultKind `json:"kind"`
	Action      string    `json:"action,omitempty"`
	Skip        int       `json:"skip,omitempty"`
	Every       int       `json:"every,omitempty"`
	Probability float64   `json:"probability,omitempty"`
	Limit       int       `json:"limit,omitempty"`
	Delay       string    `json:"delay,omitempty"`
}

func (f Fault) form() faultForm {
	form := faultForm{f.Kind, f.Action, f.Skip, f.Every, f.Probability, f.Limit, ""}
	if f.Delay != 0 {
		form.Delay = f.Delay.String()
	}
	return form
}

// MarshalJSON writes the fields in lower case, without those that are zero, and
// Delay as text:
//
//	{"kind": "slow-reply", "action": "SendMessage", "every": 3, "delay": "2s"}
func (f Fault) MarshalJSON() ([]byte, error) { return json.Marshal(f.form()) }

// UnmarshalJSON reads what MarshalJSON writes. Any other member is an error.
func (f *Fault) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return f.read(d.Decode)
}

// UnmarshalYAML reads the same members from YAML. decode is the YAML package's, and
// decides whether other members are errors.
func (f *Fault) UnmarshalYAML(decode func(any) error) error { return f.read(decode) }

// read sets f from its text form, which decode reads into a *faultForm.
func (f *Fault) read(decode func(form any) error) error {
	var form faultForm
	if err := decode(&form); err != nil {
		return err
	}
	read := Fault{Kind: form.Kind, Action: form.Action, Skip: form.Skip, Every: form.Every, Probability: form.Probability, Limit: form.Limit}
	if form.Delay != "" {
		var err error
		if read.Delay, err = time.ParseDuration(form.Delay); err != nil {
			return fmt.Errorf(`delay is %q: write a duration like "2s"`, form.Delay)
		}
	}
	*f = read
	return nil
}

// faultCountForm is the text form of a FaultCount.
type faultCountForm struct {
	faultForm
	Chances int `json:"chances"`
	Strikes int `json:"strikes"`
}

// MarshalJSON writes the fault and, beside its members, chances and strikes.
func (c FaultCount) MarshalJSON() ([]byte, error) {
	return json.Marshal(faultCountForm{c.form(), c.Chances, c.Strikes})
}

// UnmarshalJSON reads what MarshalJSON writes. Any other member is an error.
func (c *FaultCount) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var form faultCountForm
	var f Fault
	err := f.read(func(into any) error {
		err := d.Decode(&form)
		*into.(*faultForm) = form.faultForm
		return err
	})
	if err != nil {
		return err
	}
	*c = FaultCount{f, form.Chances, form.Strikes}
	return nil
}
