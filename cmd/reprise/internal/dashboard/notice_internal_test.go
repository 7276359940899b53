package dashboard

import (
	"strings"
	"testing"
)

// TestNotice: what is said of an action is text, around one link at most.
func TestNotice(t *testing.T) {
	d := &Dashboard{templates: parse(pages)}
	for _, test := range []struct {
		n    notice
		want string
	}{
		{notice{Done: "<b>Done</b>."}, `role="status">&lt;b&gt;Done&lt;/b&gt;.</p>`},
		{notice{Done: "<b>Sent</b> as <i>.", Link: link{"/ui/x?a=\"b\"", "<i>"}}, `role="status">&lt;b&gt;Sent&lt;/b&gt; as <a href="/ui/x?a=%22b%22">&lt;i&gt;</a>.</p>`},
		{notice{Done: "Sent.", Link: link{"javascript:alert(1)", "Sent"}}, `role="status"><a href="#ZgotmplZ">Sent</a>.</p>`},
		{notice{Done: "Sent.", Link: link{"/ui/x", "elsewhere"}}, `role="status">Sent.</p>`},
		{notice{Done: "Sent.", Link: link{"/ui/x", ""}}, `role="status">Sent.</p>`},
		{notice{Problem: "<no>", Link: link{"/ui/x", "no"}}, `role="alert">&lt;no&gt;</p>`},
	} {
		text, err := d.text("done", "notice", frame{Data: test.n})
		if err != nil || !strings.Contains(string(text), test.want) {
			t.Errorf("%+v: %s, %v; want %s", test.n, text, err, test.want)
		}
	}
}
