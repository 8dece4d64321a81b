package setting

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Settings)
		want   string
	}{
		{name: "defaults"},
		{name: "no nodes at all", change: func(s *Settings) { s.Nodes = 0 }},
		{name: "scheduler", change: func(s *Settings) { s.Scheduler = "volcano" }, want: `--scheduler "volcano"`},
		{name: "nodes", change: func(s *Settings) { s.Nodes = -1 }, want: "--nodes -1"},
		{name: "cpu", change: func(s *Settings) { s.CPU = resource.MustParse("0") }, want: "--cpu 0"},
		{name: "memory", change: func(s *Settings) { s.Memory = resource.MustParse("-1") }, want: "--memory -1"},
		{name: "gpus", change: func(s *Settings) { s.GPUs = -2 }, want: "--gpus -2"},
		{name: "gpu resource", change: func(s *Settings) { s.GPUResource = "a b" }, want: "--gpu-resource"},
		{name: "port", change: func(s *Settings) { s.Port = 70000 }, want: "--port 70000"},
		{name: "run for", change: func(s *Settings) { s.RunFor = -time.Second }, want: "--run-for -1s"},
		{name: "fail rate", change: func(s *Settings) { s.FailRate = 1.5 }, want: "--fail-rate 1.5"},
		{name: "fail rate is no number", change: func(s *Settings) { s.FailRate = math.NaN() }, want: "--fail-rate NaN"},
		{name: "volcano for nobody", change: func(s *Settings) { s.OperatorGangScheduler = Volcano }, want: "add --serve volcano"},
		{name: "volcano", change: func(s *Settings) { s.OperatorGangScheduler, s.Serve = Volcano, "kube-batch,volcano" }},
		{name: "names for nobody", change: func(s *Settings) { s.Scheduler, s.Serve = Default, "volcano" }, want: "--serve volcano"},
		{name: "image", change: func(s *Settings) { s.RunImage = "gangctl=/bin/gangctl" }},
		{name: "image without program", change: func(s *Settings) { s.RunImage = "gangctl" }, want: `--run-image "gangctl": must be NAME=PROGRAM`},
		{name: "program without image", change: func(s *Settings) { s.RunImage = "=x" }, want: `--run-image "=x"`},
		{name: "controllers", change: func(s *Settings) { s.With, s.Controllers = "jobset", "/kinds" }},
		{name: "folder without controllers", change: func(s *Settings) { s.Controllers = "/kinds" }, want: "--controllers /kinds: there are no controllers without --with"},
		{name: "gang without operator", change: func(s *Settings) { s.Operator, s.OperatorGangScheduler = false, "x" }, want: "--operator=false"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Defaults()
			if tt.change != nil {
				tt.change(&s)
			}
			err := s.Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// Settings go through the data dir: what comes back must equal what went in.
func TestDiffAfterJSON(t *testing.T) {
	a := Defaults()
	a.Port = 6443
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var b Settings
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	if diff := Diff(a, b); diff != "" {
		t.Errorf("round trip: %s", diff)
	}
	b.Port = 0
	if diff := Diff(a, b); diff != "" {
		t.Errorf("any port: %s", diff)
	}
	b.Nodes, b.RunFor, b.CPU = 8, time.Minute, resource.MustParse("4000m")
	if got, want := Diff(a, b), "--nodes 8 (running: 4), --run-for 1m0s (running: 30s)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// other differs from the defaults in every field.
func other() Settings {
	return Settings{
		Nodes: 7, CPU: resource.MustParse("9"), Memory: resource.MustParse("1Gi"), GPUs: 2, GPUResource: "amd.com/gpu",
		NodeFile: "/nodes.yaml", Scheduler: None, Serve: "y", APIServer: "/kube-apiserver", NativeGangs: true, CompositeGroups: true, Volumes: true, Operator: false, OperatorGangScheduler: "x", With: "jobset", Controllers: "/kinds", RunImage: "a=/b", Kubeconfig: "/kc",
		Port: 6443, RunFor: time.Hour, FailRate: 0.5,
	}
}

func TestOverlay(t *testing.T) {
	have := reflect.ValueOf(other())
	for i := range have.NumField() {
		if reflect.DeepEqual(have.Field(i).Interface(), reflect.ValueOf(Defaults()).Field(i).Interface()) {
			t.Fatalf("the test does not cover %s", have.Type().Field(i).Name)
		}
	}
	if got := Defaults().Overlay(other(), func(string) bool { return true }); !reflect.DeepEqual(got, other()) {
		t.Errorf("all flags typed: got %+v", got)
	}
	if got := other().Overlay(Defaults(), func(string) bool { return false }); !reflect.DeepEqual(got, other()) {
		t.Errorf("no flag typed: got %+v", got)
	}
}

func TestOverlayGivesWay(t *testing.T) {
	base := other()
	base.Operator = true
	tests := []struct {
		name       string
		typed      []string
		file, gang string
	}{
		{name: "something else", typed: []string{"gpus"}, file: "/nodes.yaml", gang: "x"},
		{name: "nodes instead of a file", typed: []string{"nodes"}, gang: "x"},
		{name: "no operator any more", typed: []string{"operator"}, file: "/nodes.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			typed := Defaults()
			typed.Operator = false
			got := base.Overlay(typed, func(flag string) bool { return slices.Contains(tt.typed, flag) })
			if got.NodeFile != tt.file || got.OperatorGangScheduler != tt.gang {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// The folder of controllers stays until there are none.
func TestOverlayOfControllers(t *testing.T) {
	for with, want := range map[string]string{"jobset,lws": "/kinds", "": ""} {
		got := other().Overlay(Settings{With: with}, func(flag string) bool { return flag == "with" })
		if got.With != with || got.Controllers != want {
			t.Errorf("--with=%s: got %q of %q", with, got.With, got.Controllers)
		}
	}
}
