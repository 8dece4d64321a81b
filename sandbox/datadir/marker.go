package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/sandbox/setting"
)

// format counts incompatible layouts of the data dir.
const format = 1

// Marker is sandbox.json: it identifies the directory as a sandbox's, with the
// version and the settings of the last start.
type Marker struct {
	// Format is the layout of the data dir.
	Format int `json:"format"`
	// Kubernetes is the version whose API server wrote the storage, such as v1.37.1.
	Kubernetes string `json:"kubernetes"`
	// Gangctl is the version of the program; for people, it is not compared.
	Gangctl string `json:"gangctl"`
	// Settings are those of the last `up`.
	Settings setting.Settings `json:"settings"`
	// Ports are what the components listen on, on 127.0.0.1, by component.
	Ports map[string]int `json:"ports,omitempty"`
}

// NewMarker returns a marker of this layout.
func NewMarker(kubernetes, gangctl string, s setting.Settings) Marker {
	return Marker{Format: format, Kubernetes: kubernetes, Gangctl: gangctl, Settings: s}
}

// Marker reads sandbox.json. The error is fs.ErrNotExist where there is none.
func (d Dir) Marker() (*Marker, error) {
	data, err := os.ReadFile(d.Path("sandbox.json"))
	if err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			return nil, failure.Errorf("%s is not a directory", d).WithHint("choose another one with --data-dir")
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, explain(fmt.Errorf("read data dir: %w", err))
	}
	m := &Marker{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, failure.Errorf("%s is damaged: %w", d.Path("sandbox.json"), err).
			WithHint("if nothing in %s is needed any more, remove the directory", d)
	}
	return m, nil
}

// WriteMarker replaces sandbox.json.
func (d Dir) WriteMarker(m Marker) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode sandbox.json: %w", err)
	}
	return d.WriteFile("sandbox.json", data)
}

// RequireSameVersion refuses a data dir whose layout or storage is not that of now.
func (m *Marker) RequireSameVersion(d Dir, now Marker) error {
	if m.Format == now.Format && m.Kubernetes == now.Kubernetes {
		return nil
	}
	return failure.Errorf("the sandbox in %s is of another version (Kubernetes %s, layout %d; this program: Kubernetes %s, layout %d)",
		d, m.Kubernetes, m.Format, now.Kubernetes, now.Format).
		WithHint("remove it and start again: gangctl-sandbox down --data-dir %s", d)
}
