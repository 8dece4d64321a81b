package cmdutil

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
)

// WatchFlags are the flags of commands that look again and again.
type WatchFlags struct {
	Watch    bool
	Interval time.Duration
}

// AddFlags adds --watch and --interval with their usages.
func (w *WatchFlags) AddFlags(flags *pflag.FlagSet, watch, interval string) {
	flags.BoolVarP(&w.Watch, "watch", "w", false, watch)
	flags.DurationVar(&w.Interval, "interval", 5*time.Second, interval)
	flagvalue.Check(flags, w.checkInterval, "interval")
}

// Validate refuses an interval without a watch, and one that is too short.
func (w *WatchFlags) Validate(flags *pflag.FlagSet) error {
	if !w.Watch && flags.Changed("interval") {
		return failure.Usagef("--interval has no effect without --watch").WithHint("add --watch, or leave out --interval")
	}
	return w.checkInterval()
}

func (w *WatchFlags) checkInterval() error {
	if w.Interval < time.Second {
		return failure.Usagef("--interval %s: must be 1s or more", w.Interval)
	}
	return nil
}
