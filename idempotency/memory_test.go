package idempotency_test

import (
	"testing"

	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/idempotencytest"
)

func TestMemory(t *testing.T) {
	idempotencytest.Run(t, idempotencytest.Config{
		Open:    func(*testing.T) idempotency.Store { return idempotency.NewMemory(idempotency.MemoryConfig{}) },
		Virtual: true,
	})
}
