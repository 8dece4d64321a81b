package operator

import (
	"strings"
	"testing"
)

func TestWithGangs(t *testing.T) {
	tests := []struct {
		name, command, args string
		wantCommand         string
		wantArgs            string
	}{
		{name: "no arguments", command: "/manager", wantCommand: "/manager", wantArgs: "--gang-scheduler-name=g"},
		{name: "others stay", command: "/manager", args: "--zap-devel --enable-scheme tfjob", wantCommand: "/manager", wantArgs: "--zap-devel --enable-scheme tfjob --gang-scheduler-name=g"},
		{name: "the old value goes", command: "/manager", args: "--gang-scheduler-name=volcano --a", wantCommand: "/manager", wantArgs: "--a --gang-scheduler-name=g"},
		{name: "in two arguments", command: "/manager", args: "--gang-scheduler-name volcano --a", wantCommand: "/manager", wantArgs: "--a --gang-scheduler-name=g"},
		{name: "without a value", command: "/manager", args: "--gang-scheduler-name --a", wantCommand: "/manager", wantArgs: "--a --gang-scheduler-name=g"},
		{name: "in the command", command: "/opt/tf-operator.v1 --alsologtostderr --enable-gang-scheduling x", wantCommand: "/opt/tf-operator.v1 --alsologtostderr x --gang-scheduler-name=g"},
		{name: "the same", command: "/manager", args: "--gang-scheduler-name=g", wantCommand: "/manager", wantArgs: "--gang-scheduler-name=g"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := one(t, deployed(v194, tt.command))
			o.Deployment.Spec.Template.Spec.Containers[0].Args = strings.Fields(tt.args)
			before := o.Deployment.DeepCopy()
			got := o.WithGangs([]string{"--gang-scheduler-name=g"})
			c := got.Spec.Template.Spec.Containers[0]
			if strings.Join(c.Command, " ") != tt.wantCommand || strings.Join(c.Args, " ") != tt.wantArgs {
				t.Errorf("got %q %q", c.Command, c.Args)
			}
			if !o.Same(before) {
				t.Error("the Deployment itself was changed")
			}
			if o.Same(got) != (tt.name == "the same") {
				t.Errorf("same: %v", o.Same(got))
			}
		})
	}
}
