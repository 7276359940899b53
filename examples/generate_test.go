package examples_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/examples"
)

var update = flag.Bool("update", false, "write webhooks.jsonl anew")

// TestGenerated: webhooks.jsonl is what the generator below makes. To change it,
// change the generator and run the test with -update.
func TestGenerated(t *testing.T) {
	got := strings.Join(generate(), "\n") + "\n"
	if *update {
		if err := os.WriteFile("webhooks.jsonl", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := strings.Join(examples.Webhooks(), "\n") + "\n"; got != want {
		t.Error("webhooks.jsonl is not what its generator makes: run go test ./examples -update")
	}
}

// TestVariety: the messages are as unlike each other as the demo says they are.
func TestVariety(t *testing.T) {
	const wantMessages = 320
	bodies := examples.Webhooks()
	if len(bodies) != wantMessages {
		t.Errorf("%d messages, want %d", len(bodies), wantMessages)
	}
	seen := make(map[string]bool)
	broken := 0
	scripts := map[string]int{"Latin": 0, "Hebrew or Arabic": 0, "CJK": 0, "emoji": 0}
	for i, body := range bodies {
		if body == "" || seen[body] {
			t.Errorf("message %d is empty or a copy", i)
		}
		seen[body] = true
		if !json.Valid([]byte(body)) {
			broken++
		}
		for script, in := range map[string]func(rune) bool{
			"Latin":            func(r rune) bool { return r >= 0xc0 && r < 0x250 },
			"Hebrew or Arabic": func(r rune) bool { return r >= 0x590 && r < 0x700 },
			"CJK":              func(r rune) bool { return r >= 0x3040 && r < 0xa000 || r >= 0xac00 && r < 0xd7a4 },
			"emoji":            func(r rune) bool { return r >= 0x1f300 && r < 0x1fb00 },
		} {
			if strings.ContainsFunc(body, in) {
				scripts[script]++
			}
		}
	}
	if broken != 2 {
		t.Errorf("%d messages are not valid JSON, want the 2 that were cut short on their way", broken)
	}
	for script, n := range scripts {
		if n < 5 {
			t.Errorf("only %d messages have characters of the kind %s", n, script)
		}
	}
}

// object keeps the order of its members, as the senders of webhooks do.
type object []member

type member struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", m.key)
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// generator makes messages with the same random numbers every time.
type generator struct {
	*rand.Rand
	at time.Time // the moment of the next event
}

// generate returns every message, in the order of their events.
func generate() []string {
	g := &generator{rand.New(rand.NewPCG(1, 320)), time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC)}
	kinds := []func(*generator) object{
		(*generator).order, (*generator).order, (*generator).payment, (*generator).payment, (*generator).push,
		(*generator).build, (*generator).parcel, (*generator).chat, (*generator).chat, (*generator).signup, (*generator).meeting,
	}
	// Messages that no receiver should accept, and two that crash that of the demo.
	unacceptable := map[int]func(*generator) string{
		23:  func(g *generator) string { return encode(g.paymentOf(-1250)) },
		61:  func(g *generator) string { return cut(encode(g.order())) },
		97:  func(g *generator) string { return encode(g.retired()) },
		118: func(g *generator) string { return encode(g.nested(48)) },
		141: func(g *generator) string { return encode(g.paymentOf(0)) },
		178: func(g *generator) string { return encode(g.retired()) },
		203: func(g *generator) string { return cut(encode(g.push())) },
		229: func(g *generator) string { return encode(g.nested(60)) },
		266: func(g *generator) string { return encode(g.paymentOf(-4)) },
		301: func(g *generator) string { return encode(g.retired()) },
	}
	var bodies []string
	for i := range 320 {
		g.at = g.at.Add(time.Duration(g.IntN(90_000)) * time.Millisecond)
		if make, ok := unacceptable[i]; ok {
			bodies = append(bodies, make(g))
			continue
		}
		bodies = append(bodies, encode(pick(g, kinds)(g)))
	}
	return bodies
}

func encode(o object) string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		panic(err)
	}
	return b.String()
}

// cut is a body whose sender gave up in the middle.
func cut(body string) string { return strings.ToValidUTF8(body[:len(body)*2/3], "") }

func pick[T any](g *generator, of []T) T { return of[g.IntN(len(of))] }

func (g *generator) hex(n int) string {
	const digits = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[g.IntN(len(digits))]
	}
	return string(b)
}

func (g *generator) token(prefix string) string {
	const letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
	b := []byte(prefix)
	for range 16 {
		b = append(b, letters[g.IntN(len(letters))])
	}
	return string(b)
}

type person struct{ name, mail, country, city, street string }

var people = []person{
	{"Amelia Hughes", "amelia.hughes@example.com", "GB", "Leeds", "14 Kirkgate"},
	{"Zoë Ångström", "zoe@example.org", "SE", "Göteborg", "Övre Husargatan 3"},
	{"Łukasz Wójcik", "lukasz.wojcik@example.com", "PL", "Łódź", "ul. Piotrkowska 104"},
	{"José María Núñez", "jm.nunez@example.net", "ES", "A Coruña", "Rúa Real 21, 3º izq."},
	{"François Lefèvre", "f.lefevre@example.org", "FR", "Besançon", "8 rue de l'École"},
	{"Jürgen Weiß", "juergen@example.com", "DE", "Gießen", "Große Straße 7"},
	{"佐藤 花子", "hanako.sato@example.com", "JP", "横浜市", "西区みなとみらい2-3-1"},
	{"王小明", "wang.xm@example.net", "TW", "台北市", "信義路五段7號"},
	{"김민지", "minji.kim@example.org", "KR", "서울특별시", "종로구 세종대로 209"},
	{"נועה לוי", "noa.levi@example.com", "IL", "תל אביב", "רחוב דיזנגוף 99"},
	{"ليلى حداد", "layla@example.org", "JO", "عمّان", "شارع الرينبو ١٢"},
	{"Ольга Шевченко", "olga.shevchenko@example.net", "UA", "Київ", "вул. Хрещатик 22"},
	{"Ngô Thị Hạnh", "hanh.ngo@example.com", "VN", "Huế", "27 Lê Lợi"},
	{"Priya Raghavan", "priya@example.org", "IN", "சென்னை", "12 Mount Road"},
	{"Siobhán O'Neill", "siobhan@example.com", "IE", "Dún Laoghaire", `5 Marine Road "The Moorings"`},
	{"Tāne Parata", "tane.parata@example.net", "NZ", "Whangārei", "1/30 Bank Street"},
}

type product struct {
	sku, title string
	cents      int
}

var products = []product{
	{"TEA-0031", "Darjeeling First Flush, 100 g", 1890},
	{"MUG-0007", "Mug “Hello, World”", 1250},
	{"BK-97831", "Der Prozeß <annotated>", 2400},
	{"NB-A5-DOT", "Notebook A5 · dotted", 995},
	{"急須-02", "常滑焼 急須 (360ml)", 5200},
	{"LMP-440", "Desk lamp, 4\" shade", 7450},
	{"CBL-USBC-2", "USB-C cable 2 m", 1199},
	{"STK-🦀", "Sticker sheet 🦀🐹🐍", 350},
	{"CHR-11", "Chair — oiled oak", 18900},
	{"زعفران-1", "زعفران ١ غ", 1475},
	{"SOAP-3", "Savon d'Alep (3 × 200 g)", 1530},
}

// order is a shop's.
func (g *generator) order() object {
	p := pick(g, people)
	var lines []object
	total := 0
	for range 1 + g.IntN(4) {
		item, quantity := pick(g, products), 1+g.IntN(3)
		total += item.cents * quantity
		line := object{{"sku", item.sku}, {"title", item.title}, {"quantity", quantity}, {"unit_price", money(item.cents)}}
		if g.IntN(4) == 0 {
			line = append(line, member{"properties", object{{"engraving", pick(g, []string{"Für Oma ❤️", "A & B", "2026\n★", "שנה טובה"})}, {"gift", true}}})
		}
		lines = append(lines, line)
	}
	o := object{
		{"topic", pick(g, []string{"orders/create", "orders/create", "orders/paid", "orders/cancelled"})},
		{"shop", "https://tea-and-things.example.com"},
		{"order", object{
			{"id", 4_800_000_000 + g.IntN(99_999_999)},
			{"name", fmt.Sprintf("#%d", 10_000+g.IntN(9_999))},
			{"created_at", g.at.Format(time.RFC3339)},
			{"currency", pick(g, []string{"EUR", "EUR", "GBP", "JPY", "SEK"})},
			{"total", money(total)},
			{"customer", object{{"name", p.name}, {"email", p.mail}, {"orders_count", g.IntN(40)}}},
			{"shipping_address", object{{"address1", p.street}, {"address2", nil}, {"city", p.city}, {"country", p.country}}},
			{"line_items", lines},
			{"note", pick(g, []string{"", "", "Please ring twice", "玄関前に置いてください", "لا تطرق الباب من فضلك", "Danke! 🙏"})},
			{"tags", pick(g, [][]string{{}, {"vip"}, {"wholesale", "net-30"}})},
		}},
	}
	return o
}

func money(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// payment is a payment provider's.
func (g *generator) payment() object { return g.paymentOf(100 + g.IntN(250_000)) }

func (g *generator) paymentOf(amount int) object {
	p := pick(g, people)
	kind := pick(g, []string{"payment.succeeded", "payment.succeeded", "payment.failed", "payment.refunded", "payout.paid"})
	data := object{
		{"id", g.token("pay_")},
		{"amount", amount},
		{"currency", pick(g, []string{"eur", "usd", "gbp", "jpy"})},
		{"customer", g.token("cus_")},
		{"receipt_email", p.mail},
		{"method", object{{"type", "card"}, {"card", object{{"brand", pick(g, []string{"visa", "mastercard", "amex"})}, {"last4", fmt.Sprintf("%04d", g.IntN(10_000))}, {"exp", "11/29"}}}}},
		{"metadata", object{{"order", fmt.Sprintf("#%d", 10_000+g.IntN(9_999))}}},
	}
	if kind == "payment.failed" {
		data = append(data, member{"failure", object{{"code", "card_declined"}, {"message", "Your card has insufficient funds."}}})
	}
	return object{
		{"id", g.token("evt_")},
		{"object", "event"},
		{"api_version", "2026-08-01"},
		{"created", g.at.Unix()},
		{"type", kind},
		{"livemode", false},
		{"data", data},
	}
}

// retired is an event of a version that the payment provider has long replaced.
func (g *generator) retired() object {
	o := g.payment()
	o[2].value = "2019-03-01"
	return o
}

// push is a code host's.
func (g *generator) push() object {
	p := pick(g, people)
	repo := pick(g, []string{"teahouse/web", "teahouse/ledger", "infra/charts", "mobile/app"})
	before, after := g.hex(40), g.hex(40)
	var commits []object
	for range 1 + g.IntN(3) {
		commits = append(commits, object{
			{"id", g.hex(40)},
			{"message", pick(g, []string{
				"Fix rounding of VAT in the basket", "ledger: book refunds once\n\nThe provider repeats its webhooks.",
				"Überschrift korrigiert", "修复时区问题", "Merge branch 'main' into retry-policy", "🚀 Release 4.2.0", "test: naïve façade",
			})},
			{"timestamp", g.at.Format(time.RFC3339)},
			{"url", "https://git.example.com/" + repo + "/commit/" + after[:12]},
			{"author", object{{"name", p.name}, {"email", p.mail}}},
			{"added", []string{}},
			{"modified", []string{pick(g, []string{"basket/vat.go", "README.md", "src/Ärger.tsx", "docs/日本語.md"})}},
			{"removed", []string{}},
		})
	}
	return object{
		{"ref", pick(g, []string{"refs/heads/main", "refs/heads/retry-policy", "refs/tags/v4.2.0"})},
		{"before", before},
		{"after", after},
		{"repository", object{{"id", 100_000 + g.IntN(900_000)}, {"full_name", repo}, {"private", g.IntN(2) == 0}, {"default_branch", "main"}}},
		{"pusher", object{{"name", p.name}, {"email", p.mail}}},
		{"forced", g.IntN(9) == 0},
		{"commits", commits},
	}
}

// build is a build service's.
func (g *generator) build() object {
	status := pick(g, []string{"passed", "passed", "failed", "cancelled"})
	o := object{
		{"event", "build.finished"},
		{"build", object{
			{"number", 1 + g.IntN(9_000)},
			{"status", status},
			{"branch", pick(g, []string{"main", "retry-policy", "fix/ünïcode"})},
			{"commit", g.hex(12)},
			{"duration_seconds", float64(g.IntN(900_000)) / 1000},
			{"web_url", fmt.Sprintf("https://builds.example.net/%d", g.IntN(99_999))},
		}},
		{"finished_at", g.at.Format(time.RFC3339Nano)},
	}
	if status == "failed" {
		o = append(o, member{"log_tail", "--- FAIL: TestRefund (0.03s)\n\tledger_test.go:88: got 2 bookings, want 1\nFAIL\texample.com/ledger\t0.412s\n"})
	}
	return o
}

// parcel is a courier's.
func (g *generator) parcel() object {
	p := pick(g, people)
	return object{
		{"tracking", fmt.Sprintf("JD%012d", g.Int64N(999_999_999_999))},
		{"status", pick(g, []string{"label_created", "in_transit", "out_for_delivery", "delivered", "exception"})},
		{"location", object{{"city", p.city}, {"country", p.country}, {"geo", []float64{float64(g.IntN(180_000))/1000 - 90, float64(g.IntN(360_000))/1000 - 180}}}},
		{"signed_by", pick(g, []any{nil, p.name})},
		{"occurred_at", g.at.Format("2006-01-02T15:04:05-0700")},
		{"carrier", "https://parcels.example.org"},
	}
}

var lines = []string{
	"Morning! Did the refunds go out?",
	"yes 👍🏽 all 214 of them",
	"お疲れさまです。リリースは15時の予定です。",
	"שלום לכולם, הפגישה נדחתה למחר ב־10:00",
	"هل يمكن لأحد مراجعة الطلب رقم ٤٥١٢؟",
	"Zażółć gęślą jaźń — works now, thanks!",
	"It's “done” when p99 < 200 ms, not before ¯\\_(ツ)_/¯",
	"Привіт! Хто сьогодні чергує? 🇺🇦",
	"👩‍👩‍👧‍👦 family plan: +12 % this week",
	"배포 완료했습니다 🎉",
	"```sql\nSELECT id, state FROM orders\nWHERE state <> 'shipped';\n```",
	"नमस्ते, invoice #4711 का क्या हुआ?",
	"I\u0301 typed this é as two code points",
	"Ça marche — à tout à l'heure !",
}

// chat is a message of a chat, now and then with the one it answers.
func (g *generator) chat() object {
	return object{
		{"event", "message.created"},
		{"team", "T" + strings.ToUpper(g.hex(8))},
		{"channel", object{{"id", "C" + strings.ToUpper(g.hex(8))}, {"name", pick(g, []string{"orders", "on-call", "général", "東京オフィス"})}}},
		{"message", g.message(g.IntN(3))},
	}
}

func (g *generator) message(answers int) object {
	p := pick(g, people)
	m := object{
		{"id", g.token("m_")},
		{"user", object{{"name", p.name}, {"email", p.mail}}},
		{"ts", fmt.Sprintf("%d.%06d", g.at.Unix(), g.IntN(1_000_000))},
		{"text", pick(g, lines)},
		{"reactions", pick(g, [][]object{{}, {{{"emoji", "🎉"}, {"count", 3}}}, {{{"emoji", "👀"}, {"count", 1}}, {{"emoji", "✅"}, {"count", 2}}}})},
	}
	if answers > 0 {
		m = append(m, member{"reply_to", g.message(answers - 1)})
	}
	return m
}

// nested is a chat message at the end of a long thread.
func (g *generator) nested(depth int) object {
	o := g.chat()
	o[3].value = g.message(depth)
	return o
}

// signup is an identity provider's.
func (g *generator) signup() object {
	p := pick(g, people)
	return object{
		{"specversion", "1.0"},
		{"id", g.hex(8) + "-" + g.hex(4) + "-4" + g.hex(3) + "-a" + g.hex(3) + "-" + g.hex(12)},
		{"source", "https://id.example.com/realms/shop"},
		{"type", pick(g, []string{"com.example.user.created", "com.example.user.verified", "com.example.user.deleted"})},
		{"time", g.at.Format(time.RFC3339)},
		{"datacontenttype", "application/json"},
		{"data", object{
			{"name", p.name}, {"email", p.mail},
			{"locale", strings.ToLower(p.country)},
			{"consents", object{{"newsletter", g.IntN(2) == 0}, {"terms", "2026-05"}}},
			{"ip", fmt.Sprintf("203.0.113.%d", 1+g.IntN(254))},
		}},
	}
}

// meeting is a calendar's.
func (g *generator) meeting() object {
	start := g.at.Add(time.Duration(1+g.IntN(200)) * time.Hour).Truncate(15 * time.Minute)
	var guests []object
	for range 1 + g.IntN(5) {
		p := pick(g, people)
		guests = append(guests, object{{"email", p.mail}, {"cn", p.name}, {"partstat", pick(g, []string{"accepted", "declined", "tentative", "needs-action"})}})
	}
	return object{
		{"event", "calendar.updated"},
		{"uid", g.hex(20) + "@calendar.example.com"},
		{"summary", pick(g, []string{"Stand-up", "Post-mortem: Tuesday's outage", "週次ミーティング", "Kaffee ☕ mit Jürgen", "פגישת צוות"})},
		{"start", start.Format(time.RFC3339)},
		{"end", start.Add(45 * time.Minute).Format(time.RFC3339)},
		{"attendees", guests},
		{"sequence", g.IntN(6)},
	}
}
