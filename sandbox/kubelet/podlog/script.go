// Package podlog serves the logs of simulated containers the way a kubelet
// does. What they print looks like tf_cnn_benchmarks (tensorflow/benchmarks).
// The first line states that it is made up.
package podlog

import (
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// LinesAnnotation of a pod overrides its log: a number is how many steps are
// logged, anything else is the text itself, line by line.
const LinesAnnotation = "sandbox.gangctl.dev/log-lines"

const firstLine = "simulated by gangctl-sandbox: no program runs here, every figure below is made up"

// defaultSteps is how many steps a run with an end logs.
const defaultSteps = 20

// Run is one run of a container.
type Run struct {
	// Start is when it began; End when it is or was over, zero if never.
	Start, End time.Time
	// Over means that it has ended, with ExitCode.
	Over     bool
	ExitCode int32
}

// Line is one line of a log.
type Line struct {
	Time time.Time
	Text string
}

// Lines returns the log of a run, including what is still to come. It does not
// end for a run without an end.
func Lines(pod *corev1.Pod, run Run) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		for i, text := range header(pod) {
			if !yield(Line{run.Start.Add(time.Duration(i) * time.Millisecond), text}) {
				return
			}
		}
		if !body(pod, run, yield) || !run.Over {
			return
		}
		if run.ExitCode != 0 {
			yield(Line{run.End, fmt.Sprintf("simulated failure: the container exits with code %d", run.ExitCode)})
		}
	}
}

func header(pod *corev1.Pod) []string {
	out := []string{firstLine}
	if override(pod) != nil {
		return out
	}
	role, index := pod.Labels["training.kubeflow.org/replica-type"], pod.Labels["training.kubeflow.org/replica-index"]
	if role == "ps" {
		return append(out, "TensorFlow:  1.15", "Running parameter server "+index)
	}
	return append(out,
		"TensorFlow:  1.15",
		"Model:       resnet50",
		"Dataset:     imagenet (synthetic)",
		"Mode:        BenchmarkMode.TRAIN",
		"Batch size:  32 per device",
		"Data format: NCHW",
		"Optimizer:   sgd",
		"==========",
		"Generating training model",
		"Initializing graph",
		"Running warm up",
		"Done warm up",
		"Step\tImg/sec\ttotal_loss")
}

// body yields the steps, or the text of the annotation, spread over the run. It
// reports whether the reader wants more.
func body(pod *corev1.Pod, run Run, yield func(Line) bool) bool {
	texts := override(pod)
	if texts == nil && pod.Labels["training.kubeflow.org/replica-type"] == "ps" {
		return true // it serves, and has nothing to log
	}
	steps := defaultSteps
	if n, err := strconv.Atoi(pod.Annotations[LinesAnnotation]); err == nil && n >= 0 {
		texts, steps = nil, n
	} else if texts != nil {
		steps = len(texts)
	}
	endless := run.End.IsZero()
	every := time.Second
	if !endless {
		every = run.End.Sub(run.Start) / time.Duration(steps+1)
	}
	_, numbered := pod.Annotations[LinesAnnotation]
	for i := 1; i <= steps || (endless && !numbered); i++ {
		text := ""
		if texts != nil {
			text = texts[i-1]
		} else {
			text = step(pod, i)
		}
		at := run.Start.Add(time.Duration(i) * every)
		if run.Over && at.After(run.End) {
			return true
		}
		if !yield(Line{at, text}) {
			return false
		}
	}
	if texts != nil || endless || !run.Over || run.ExitCode != 0 {
		return true
	}
	rule := strings.Repeat("-", 64)
	return yield(Line{run.End, rule}) && yield(Line{run.End, fmt.Sprintf("total images/sec: %.2f", speed(pod, 0))}) && yield(Line{run.End, rule})
}

// override is the text of the annotation; nil if it is a number or not there.
func override(pod *corev1.Pod) []string {
	text, ok := pod.Annotations[LinesAnnotation]
	if !ok {
		return nil
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

func step(pod *corev1.Pod, i int) string {
	loss := 7.0 + 1.3/float64(i)
	return fmt.Sprintf("%d\timages/sec: %.1f +/- %.1f (jitter = %.1f)\t%.3f", i*10, speed(pod, i), 0.4, 0.9, loss)
}

// speed is a figure that differs a little between pods and steps.
func speed(pod *corev1.Pod, i int) float64 {
	h := fnv.New32a()
	fmt.Fprint(h, pod.UID, i)
	return 210 + float64(h.Sum32()%100)/10
}
