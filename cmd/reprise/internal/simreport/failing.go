package simreport

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// ReadFailing sets the shares of attempts that fail from a text such as 20%, from one of the shares of
// the first attempt, the second and so on, such as 50%,20%, and from one with changes, such as
// 2%,15%@1h,2%@4h: a share with a time holds from then on, with those that follow it.
func ReadFailing(h *simulate.Handler, text string) error {
	var fails []float64
	var changes []simulate.Change
	for part := range strings.SplitSeq(text, ",") {
		share, at, changed := strings.Cut(part, "@")
		p, err := ReadShare(share)
		if err != nil {
			return err
		}
		switch {
		case changed:
			when, err := time.ParseDuration(strings.TrimSpace(at))
			if err != nil {
				return fmt.Errorf("%q is no time: write from when on %s fail, such as %s@1h", at, share, share)
			}
			changes = append(changes, simulate.Change{At: when, Fails: []float64{p}})
		case len(changes) > 0:
			last := &changes[len(changes)-1]
			last.Fails = append(last.Fails, p)
		default:
			fails = append(fails, p)
		}
	}
	h.Fails, h.Changes = fails, changes
	return nil
}

// failingText is the shares of attempts that fail, such as "2 % fail, 15 % from 1h on"; empty: none does.
func failingText(h simulate.Handler) string {
	if len(h.Fails) == 0 && len(h.Changes) == 0 {
		return ""
	}
	text := shares(h.Fails) + " fail"
	for _, c := range h.Changes {
		text += ", " + shares(c.Fails) + " from " + short(c.At)
	}
	return text
}

func shares(all []float64) string {
	if len(all) == 0 {
		return "none"
	}
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = percent(p)
	}
	return strings.Join(texts, ", ")
}
