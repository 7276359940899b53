package serving

// Cost compares the server in memory with a handler of net/http that reads the requests and answers
// with the same bytes: a ratio above 1 is the cost of SQS. A third server does only the minimal
// work on messages: the difference to it is the cost of this server.
func (b *Bench) Cost() error {
	memory, err := b.reprise("reprise serve --memory", "--memory")
	if err != nil {
		return err
	}
	defer memory.stop()
	const connections = 8
	if err := b.load(memory, connections); err != nil {
		return err
	}
	replies, err := record(memory.process.URL())
	if err != nil {
		return err
	}
	canned, err := b.child("the same bytes from net/http", childConfig{Replies: replies})
	if err != nil {
		return err
	}
	defer canned.stop()
	if err := b.load(canned, connections); err != nil {
		return err
	}
	least, err := b.child("and messages kept, given out, let go", childConfig{Replies: replies, Least: true})
	if err != nil {
		return err
	}
	defer least.stop()
	if err := b.load(least, connections); err != nil {
		return err
	}
	again := sending
	again.name = "send again"
	subjects := []*subject{memory, canned, least}
	all, err := interleave(b.scale.Rounds, subjects, sending, working, again, receiving, deleting)
	if err != nil {
		return err
	}
	var lines []line
	for _, name := range []string{"send", "receive", "delete", "receive+delete"} {
		of := all[name]
		lines = append(lines, line{name + ", " + canned.name, of[1], nil, aim{}})
		lines = append(lines, line{name + ", " + least.name, of[2], of[1], aim{}})
		lines = append(lines, line{name + ", " + memory.name, of[0], of[1], aim{ofCPU, 0, 1.3}})
	}
	return b.table("What SQS costs on top of net/http", b.medians(", 8 connections"), lines)
}
