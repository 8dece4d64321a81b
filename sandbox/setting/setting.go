// Package setting holds the spec of a sandbox: the values of the flags of
// `gangctl-sandbox up`, in the form in which they are kept in the data dir.
package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Scheduler is the scheduler of a sandbox.
type Scheduler string

// The schedulers.
const (
	// Gang is the bundled gang scheduler.
	Gang Scheduler = "gang"
	// Default is kube-scheduler as it comes with Kubernetes.
	Default Scheduler = "default"
	// None leaves every pod pending, for users who run a scheduler of their own.
	None Scheduler = "none"
)

// Volcano is the name of the gang scheduler for which the operator creates
// PodGroups of another kind than for all others.
const Volcano = "volcano"

// Settings is the spec of one sandbox. Its JSON form is kept in the data dir,
// so that a second `up` can compare it with its own.
type Settings struct {
	// Nodes is how many nodes of the same shape there are, named node-1 to node-N.
	Nodes int `json:"nodes"`
	// CPU, Memory and GPUs are the size of each of these nodes.
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
	GPUs   int64             `json:"gpus"`
	// GPUResource is the extended resource that GPUs are counted in.
	GPUResource string `json:"gpuResource"`
	// NodeFile holds Node objects to create instead of Nodes; absolute, or empty.
	NodeFile string `json:"nodeFile,omitempty"`
	// Scheduler is what schedules.
	Scheduler Scheduler `json:"scheduler"`
	// Serve are further names that the gang scheduler answers to, with commas between them.
	Serve string `json:"serve,omitempty"`
	// APIServer is a program that is a kube-apiserver of another version, an absolute path; empty for the one of this program.
	APIServer string `json:"apiServer,omitempty"`
	// NativeGangs has the API server serve Kubernetes' own PodGroups.
	NativeGangs bool `json:"nativeGangs,omitempty"`
	// CompositeGroups has it serve composite PodGroups, too.
	CompositeGroups bool `json:"compositeGroups,omitempty"`
	// Volumes provisions the volumes of claims.
	Volumes bool `json:"volumes,omitempty"`
	// Operator runs the Kubeflow Training Operator.
	Operator bool `json:"operator"`
	// OperatorGangScheduler is the operator's --gang-scheduler-name; empty for none.
	OperatorGangScheduler string `json:"operatorGangScheduler,omitempty"`
	// With are the controllers of other projects that run, with commas between their names, as addon.Select returns them; Controllers is the
	// folder that has them: absolute, and empty without them.
	With        string `json:"with,omitempty"`
	Controllers string `json:"controllers,omitempty"`
	// RunImage is NAME=PROGRAM: containers of images whose last part is NAME run
	// as processes of PROGRAM, an absolute path; empty if all pods are simulated.
	RunImage string `json:"runImage,omitempty"`
	// Kubeconfig is where the kubeconfig is written; absolute.
	Kubeconfig string `json:"kubeconfig"`
	// Port is the API server's; 0 for any free one.
	Port int `json:"port"`
	// RunFor is how long a simulated pod runs; 0 for no end.
	RunFor time.Duration `json:"runFor"`
	// FailRate is the share of pods, 0 to 1, that fail with exit code 1.
	FailRate float64 `json:"failRate"`
}

// Defaults returns the settings of an `up` without flags.
func Defaults() Settings {
	return Settings{
		Nodes:       4,
		CPU:         resource.MustParse("4"),
		Memory:      resource.MustParse("16Gi"),
		GPUs:        1,
		GPUResource: "nvidia.com/gpu",
		Scheduler:   Gang,
		Operator:    true,
		RunFor:      30 * time.Second,
	}
}

// Validate returns what is wrong with the settings, naming the flag.
func (s Settings) Validate() error {
	switch s.Scheduler {
	case Gang, Default, None:
	default:
		return fmt.Errorf("--scheduler %q: must be %s, %s or %s", s.Scheduler, Gang, Default, None)
	}
	switch {
	case s.Nodes < 0:
		return fmt.Errorf("--nodes %d: must not be negative", s.Nodes)
	case s.CPU.Sign() <= 0:
		return fmt.Errorf("--cpu %s: must be positive", s.CPU.String())
	case s.Memory.Sign() <= 0:
		return fmt.Errorf("--memory %s: must be positive", s.Memory.String())
	case s.GPUs < 0:
		return fmt.Errorf("--gpus %d: must not be negative", s.GPUs)
	case s.Port < 0 || s.Port > 65535:
		return fmt.Errorf("--port %d: must be 0 to 65535", s.Port)
	case s.RunFor < 0:
		return fmt.Errorf("--run-for %s: must not be negative", s.RunFor)
	case !(s.FailRate >= 0 && s.FailRate <= 1):
		return fmt.Errorf("--fail-rate %v: must be between 0 and 1", s.FailRate)
	case s.Serve != "" && s.Scheduler != Gang:
		return fmt.Errorf("--serve %s: only the gang scheduler answers to other names, and --scheduler is %s", s.Serve, s.Scheduler)
	case s.CompositeGroups && !s.NativeGangs:
		return errors.New("--composite-groups: they are made of PodGroups of Kubernetes; add --native-gangs")
	case s.OperatorGangScheduler == Volcano && s.Scheduler == Gang && !slices.Contains(strings.Split(s.Serve, ","), Volcano):
		return fmt.Errorf("--operator-gang-scheduler %s: no scheduler would serve those pods; add --serve %s", Volcano, Volcano)
	case s.Controllers != "" && s.With == "":
		return fmt.Errorf("--controllers %s: there are no controllers without --with", s.Controllers)
	case s.OperatorGangScheduler != "" && !s.Operator:
		return fmt.Errorf("--operator-gang-scheduler %s: there is no operator with --operator=false", s.OperatorGangScheduler)
	}
	if name, program, _ := strings.Cut(s.RunImage, "="); s.RunImage != "" && (name == "" || program == "") {
		return fmt.Errorf("--run-image %q: must be NAME=PROGRAM, such as gangctl=bin/gangctl", s.RunImage)
	}
	if problems := validation.IsQualifiedName(s.GPUResource); len(problems) > 0 {
		return fmt.Errorf("--gpu-resource %q: %s", s.GPUResource, problems[0])
	}
	return nil
}

// Diff lists the flags in which b differs from a, as `--nodes 8 (running: 4)`;
// it is empty when b is met by a. A port of 0 is met by any.
func Diff(a, b Settings) string {
	var out []string
	compare := func(flag string, have, want any) {
		if have != want {
			out = append(out, fmt.Sprintf("--%s %v (running: %v)", flag, want, have))
		}
	}
	compare("nodes", a.Nodes, b.Nodes)
	compare("cpu", a.CPU.String(), b.CPU.String())
	compare("memory", a.Memory.String(), b.Memory.String())
	compare("gpus", a.GPUs, b.GPUs)
	compare("gpu-resource", a.GPUResource, b.GPUResource)
	compare("node-file", a.NodeFile, b.NodeFile)
	compare("scheduler", a.Scheduler, b.Scheduler)
	compare("serve", a.Serve, b.Serve)
	compare("api-server", a.APIServer, b.APIServer)
	compare("native-gangs", a.NativeGangs, b.NativeGangs)
	compare("composite-groups", a.CompositeGroups, b.CompositeGroups)
	compare("volumes", a.Volumes, b.Volumes)
	compare("operator", a.Operator, b.Operator)
	compare("operator-gang-scheduler", a.OperatorGangScheduler, b.OperatorGangScheduler)
	compare("with", a.With, b.With)
	compare("controllers", a.Controllers, b.Controllers)
	compare("run-image", a.RunImage, b.RunImage)
	compare("kubeconfig", a.Kubeconfig, b.Kubeconfig)
	if b.Port != 0 {
		compare("port", a.Port, b.Port)
	}
	compare("run-for", a.RunFor, b.RunFor)
	compare("fail-rate", a.FailRate, b.FailRate)
	return strings.Join(out, ", ")
}

// Overlay returns s with what was typed on the command line in its place. typed
// holds the values of all flags, isTyped reports which of them were given.
func (s Settings) Overlay(typed Settings, isTyped func(flag string) bool) Settings {
	for flag, take := range map[string]func(){
		"nodes":                   func() { s.Nodes = typed.Nodes },
		"cpu":                     func() { s.CPU = typed.CPU },
		"memory":                  func() { s.Memory = typed.Memory },
		"gpus":                    func() { s.GPUs = typed.GPUs },
		"gpu-resource":            func() { s.GPUResource = typed.GPUResource },
		"node-file":               func() { s.NodeFile = typed.NodeFile },
		"scheduler":               func() { s.Scheduler = typed.Scheduler },
		"serve":                   func() { s.Serve = typed.Serve },
		"api-server":              func() { s.APIServer = typed.APIServer },
		"native-gangs":            func() { s.NativeGangs = typed.NativeGangs },
		"composite-groups":        func() { s.CompositeGroups = typed.CompositeGroups },
		"volumes":                 func() { s.Volumes = typed.Volumes },
		"operator":                func() { s.Operator = typed.Operator },
		"operator-gang-scheduler": func() { s.OperatorGangScheduler = typed.OperatorGangScheduler },
		"with":                    func() { s.With = typed.With },
		"controllers":             func() { s.Controllers = typed.Controllers },
		"run-image":               func() { s.RunImage = typed.RunImage },
		"kubeconfig":              func() { s.Kubeconfig = typed.Kubeconfig },
		"port":                    func() { s.Port = typed.Port },
		"run-for":                 func() { s.RunFor = typed.RunFor },
		"fail-rate":               func() { s.FailRate = typed.FailRate },
	} {
		if isTyped(flag) {
			take()
		}
	}
	// A flag that was typed overrides a conflicting earlier setting.
	if isTyped("nodes") && !isTyped("node-file") {
		s.NodeFile = ""
	}
	if isTyped("operator") && !s.Operator && !isTyped("operator-gang-scheduler") {
		s.OperatorGangScheduler = ""
	}
	if isTyped("with") && s.With == "" && !isTyped("controllers") {
		s.Controllers = ""
	}
	return s
}
