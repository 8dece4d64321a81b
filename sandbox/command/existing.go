package command

import (
	"errors"
	"io/fs"

	"github.com/gangctl/gangctl/pkg/cli/version"

	"github.com/gangctl/gangctl/sandbox/datadir"
	"github.com/gangctl/gangctl/sandbox/session"
	"github.com/gangctl/gangctl/sandbox/setting"
	"github.com/gangctl/gangctl/sandbox/supervise"
)

// existing is the sandbox that `up` finds in a data dir.
type existing struct {
	session.Session
	// marker is nil if no sandbox was made there yet.
	marker *datadir.Marker
	// running reports whether a supervisor has it; ended are the components that it
	// lost.
	running bool
	ended   []string
}

// whole reports whether there is nothing to start.
func (e *existing) whole() bool { return e.running && len(e.ended) == 0 }

// look finds out what there is, and refuses what this program cannot start.
func look(sess session.Session) (*existing, error) {
	e := &existing{Session: sess}
	var err error
	if e.running, err = sess.Running(); err != nil {
		return nil, err
	}
	e.marker, err = sess.Dir.Marker()
	if errors.Is(err, fs.ErrNotExist) && !e.running {
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	state, err := sess.State()
	if err != nil {
		return nil, err
	}
	// One that is being stopped loses its components, as it should.
	if state != nil && state.Phase != supervise.Stopping {
		e.ended = state.Ended()
	}
	if e.whole() {
		return e, nil
	}
	return e, e.marker.RequireSameVersion(sess.Dir, markerOf(setting.Settings{}))
}

// markerOf is the marker of a sandbox that this program starts.
func markerOf(s setting.Settings) datadir.Marker {
	return datadir.NewMarker(supervise.KubernetesVersion(), version.Get().Version, s)
}
