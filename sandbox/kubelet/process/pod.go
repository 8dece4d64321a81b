package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/sandbox/component"
)

// Between two starts of a container that ends, the pause doubles up to the
// longest. They are shorter than a kubelet's: who tests does not want to wait.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 10 * time.Second
)

// pod is one pod with one container that runs for real.
type pod struct {
	runner *Runner
	spec   *corev1.Pod
	dir    string

	restarts int32
	last     *corev1.ContainerStateTerminated
}

// live runs the pod's container, again and again according to its restart
// policy, until life ends. Then the pod is reported gone, if it was deleted; if
// only the runner ends (ctx), it stays as it is.
func (p *pod) live(ctx, life context.Context) {
	log := p.runner.Log.With("pod", p.spec.Namespace+"/"+p.spec.Name)
	pause := firstPause
	for life.Err() == nil {
		started := time.Now()
		c, err := p.prepare(life)
		if err != nil {
			p.report(life, corev1.PodPending, waiting("CreateContainerConfigError", err.Error()), false)
		} else if p.last, err = p.run(life, c); err != nil {
			log.Error("container is not started", "error", err)
			p.report(life, corev1.PodPending, waiting("RunContainerError", err.Error()), false)
		}
		if life.Err() != nil {
			break
		}
		if p.last != nil && err == nil {
			if p.over(life) {
				<-life.Done()
				break
			}
			p.restarts++
			p.report(life, corev1.PodRunning, waiting("CrashLoopBackOff", "back-off "+pause.String()+" restarting failed container"), false)
		}
		if time.Since(started) > longestPause {
			pause = firstPause
		}
		select {
		case <-life.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
	if ctx.Err() != nil {
		return
	}
	now := int64(0)
	options := metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.spec.UID}}
	if err := p.runner.Client.CoreV1().Pods(p.spec.Namespace).Delete(ctx, p.spec.Name, options); err != nil {
		log.Info("pod is gone already", "answer", err)
	}
	if err := os.RemoveAll(p.dir); err != nil {
		log.Error("files of the pod stay", "error", err)
	}
}

// over reports whether the container is not to be started again, and reports it.
func (p *pod) over(life context.Context) bool {
	policy := p.spec.Spec.RestartPolicy
	if policy == corev1.RestartPolicyAlways || (policy == corev1.RestartPolicyOnFailure && p.last.ExitCode != 0) {
		return false
	}
	phase := corev1.PodSucceeded
	if p.last.ExitCode != 0 {
		phase = corev1.PodFailed
	}
	p.report(life, phase, corev1.ContainerState{Terminated: p.last}, false)
	return true
}

// run starts the container and returns how it ended.
func (p *pod) run(life context.Context, c *container) (*corev1.ContainerStateTerminated, error) {
	current, previous := filepath.Join(p.dir, "current.log"), filepath.Join(p.dir, "previous.log")
	if err := os.Rename(current, previous); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("keep log: %w", err)
	}
	out, err := os.OpenFile(current, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer out.Close()
	// The kernel ties a process to the thread that started it, see component.Tied.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(p.runner.Program, c.args...)
	cmd.Dir, cmd.Env = p.dir, c.env
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = component.Tied()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.runner.Program, err)
	}
	started := metav1.Now()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}
	p.report(life, corev1.PodRunning, running, false)

	probing, stop := context.WithCancel(life)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.watch(probing, func(ready bool) { p.report(life, corev1.PodRunning, running, ready) }, func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		})
	}()
	ended := make(chan struct{})
	go p.end(life, cmd, ended)
	_ = cmd.Wait()
	close(ended)
	stop()
	<-done
	return terminated(cmd.ProcessState, started), nil
}

// end terminates the process when the pod ends, and kills it after the grace period.
func (p *pod) end(life context.Context, cmd *exec.Cmd, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-life.Done():
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(grace):
		_ = cmd.Process.Kill()
	}
}

// grace is how long a process may take to end. It is shorter than that of the
// sandbox's components, whose processes these outlive by nothing.
const grace = 2 * time.Second
