package reprise

// Seeded returns cfg with all that its consumer leaves to chance fixed by seed.
func Seeded(cfg Config, seed uint64) Config {
	cfg.seed = seed
	return cfg
}
