package collect

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// listenEvery is after how long a silence the server is queried for a sign of life, and listenBudget how long that may take.
	listenEvery  = 5 * time.Second
	listenBudget = 3 * time.Second
)

// listen notices a server that is gone without closing connections: the connections to it stand, and it takes a client a minute to notice
// that nothing comes. Where something changes all the time, no query is sent.
func (m *Mirror) listen(ctx context.Context) {
	ticker := time.NewTicker(listenEvery)
	defer ticker.Stop()
	m.live(nil, m.c.o.Now())
	for before := m.heard.Load(); ; before = m.heard.Load() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		begin := m.c.o.Now()
		if m.heard.Load() != before {
			m.live(nil, begin)
			continue
		}
		limited, cancel := context.WithTimeout(ctx, listenBudget)
		_, err := m.c.client.Release(limited)
		cancel()
		if ctx.Err() == nil {
			m.live(err, begin)
		}
	}
}

// live notes whether the server gives a sign of life. A refusal is one.
func (m *Mirror) live(err error, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var answered apierrors.APIStatus
	if m.away = err; err == nil || errors.As(err, &answered) {
		m.away, m.alive = nil, at
	}
}
