package supervise

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/gangctl/gangctl/sandbox/datadir"
)

// Phase is how far a sandbox has come.
type Phase string

// The phases.
const (
	Starting Phase = "starting"
	Ready    Phase = "ready"
	// Degraded is a sandbox that was ready and of which a component ended since.
	Degraded Phase = "degraded"
	Stopping Phase = "stopping"
	Failed   Phase = "failed"
)

// State is state.json: what a supervisor reports.
type State struct {
	// PID is the supervisor that wrote it; it means nothing once that is gone.
	PID   int   `json:"pid"`
	Phase Phase `json:"phase"`
	// Step is what is being done or waited for while starting.
	Step string `json:"step,omitempty"`
	// Error and Hint are why the sandbox failed.
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// Started is when the supervisor began; Took is how long until Ready.
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took,omitempty"`
	// Components are in the order of their start.
	Components []Component `json:"components"`
}

// Component is one child process.
type Component struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Exit is how it ended; empty while it runs.
	Exit string `json:"exit,omitempty"`
}

// Ended are the names of the components that ended, in the order of their start.
func (s *State) Ended() []string {
	var out []string
	for _, c := range s.Components {
		if c.Exit != "" {
			out = append(out, c.Name)
		}
	}
	return out
}

// degradeIfEnded makes a ready sandbox degraded when one of its components has ended.
func (s *State) degradeIfEnded() {
	if s.Phase == Ready && len(s.Ended()) > 0 {
		s.Phase = Degraded
	}
}

// ReadState returns the last report of the data dir's supervisor.
func ReadState(dir datadir.Dir) (*State, error) {
	data, err := os.ReadFile(dir.Path("state.json"))
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	s := &State{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("read %s: %w", dir.Path("state.json"), err)
	}
	return s, nil
}

// board is the supervisor's copy of the state; each change is written at once.
type board struct {
	dir datadir.Dir
	mu  sync.Mutex
	now State
}

func (b *board) change(f func(*State)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.now)
	data, err := json.MarshalIndent(b.now, "", "  ")
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	return b.dir.WriteFile("state.json", data)
}

func (b *board) step(what string) error { return b.change(func(s *State) { s.Step = what }) }
