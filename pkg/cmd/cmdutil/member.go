package cmdutil

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// leaders are the roles that lead a job, the first that there is; a job without them is led by its first worker.
var leaders = []string{"chief", "master", "launcher", ray.Head, leaderworkerset.Leader, "worker"}

// MemberFlags is which member is meant.
type MemberFlags struct {
	// Role is empty for the one that leads the job.
	Role  string
	Index int

	typed func(flag string) bool // whether a flag was given
}

// AddFlags adds --role and --index.
func (c *MemberFlags) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.Role, "role", "", "Role of the member; default is the one that leads the job: chief, master, launcher, head, leader or worker")
	cmd.Flags().IntVar(&c.Index, "index", 0, "Index of the member in its role")
	c.typed = cmd.Flags().Changed
}

// Validate reports a choice that cannot be: exit code 2.
func (c *MemberFlags) Validate() error {
	if c.Index < 0 {
		return failure.Usagef("--index %d: must be 0 or more", c.Index)
	}
	return nil
}

// Running finds the member, whose pod runs, of the job that an argument names; or the one that it names itself: pod/NAME. It is an
// error if the member does not run.
func (c *MemberFlags) Running(ctx context.Context, client *kube.Client, namespace, arg string) (*summary.Row, error) {
	meant, err := ResolveTarget(ctx, client, namespace, arg)
	if err != nil {
		return nil, err
	}
	job, m := meant.Job.Meta.Name, meant.Member
	switch {
	case m == nil:
		if m, err = c.pick(job, meant.Job.Meta.Namespace, summary.Rows(meant.Job, meant.Pods)); err != nil {
			return nil, err
		}
	case c.typed("role") || c.typed("index"):
		return nil, meant.ChosenTwice(arg)
	}
	if m.Pod == nil || m.Pod.Status.Phase != corev1.PodRunning {
		text := fmt.Sprintf("%s of %s does not run: it is %s", m.Name(), job, m.State)
		if m.Reason != "" {
			text += ": " + m.Reason
		}
		return nil, failure.Errorf("%s", text).WithHint("see the others: gangctl get %s -n %s", job, namespace)
	}
	return m, nil
}

// pick finds the member among all.
func (c *MemberFlags) pick(job, namespace string, members []summary.Row) (*summary.Row, error) {
	var roles []string
	for _, m := range members {
		if !slices.Contains(roles, m.Role) {
			roles = append(roles, m.Role)
		}
	}
	if len(roles) == 0 {
		return nil, failure.Errorf("%s has no members", job)
	}
	role := strings.ToLower(c.Role)
	if role == "" {
		role = roles[0]
		if i := slices.IndexFunc(leaders, func(r string) bool { return slices.Contains(roles, r) }); i >= 0 {
			role = leaders[i]
		}
	}
	for i := range members {
		if members[i].Role == role && members[i].Index == c.Index {
			return &members[i], nil
		}
	}
	return nil, failure.Errorf("%s has no member %s-%d", job, role, c.Index).WithHint("see its members: gangctl get %s -n %s", job, namespace)
}

// Container is the requested one of some containers of a member's pod, else the one that does the work, else the first.
func Container(m *summary.Row, requested string, among []corev1.Container) (string, error) {
	pod := m.Pod
	names := make([]string, 0, len(among))
	for _, c := range among {
		names = append(names, c.Name)
	}
	switch {
	case requested != "" && !slices.Contains(names, requested):
		return "", failure.Errorf("pod %s/%s has no container %q", pod.Namespace, pod.Name, requested).WithHint("its containers are: %s", strings.Join(names, ", "))
	case requested != "":
		return requested, nil
	case slices.Contains(names, m.Main):
		return m.Main, nil
	case len(names) == 0:
		return "", fmt.Errorf("pod %s/%s has no containers", pod.Namespace, pod.Name)
	}
	return names[0], nil
}

// upgrading stands before the message of a server that did not open a stream.
const upgrading = "unable to upgrade connection: "

// StreamError restores the status of a server that refused a stream: client-go keeps the message only.
func StreamError(err error) error {
	if err == nil {
		return nil
	}
	_, text, found := strings.Cut(err.Error(), upgrading)
	if !found || !strings.Contains(text, "cannot create resource") {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: text}}
}
