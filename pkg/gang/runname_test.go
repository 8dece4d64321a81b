package gang

import "testing"

func TestRunsName(t *testing.T) {
	for name, want := range map[string]string{
		"llama": "llama", "llama-7": "llama", "llama-2026-11-21": "llama", "llama-20261121t0930z": "llama", "llama-x7k2p": "llama", "llama-bcdfg": "llama", "train_v2": "train",
		"bert.run12": "bert", "sweep-seed42": "sweep", "nightly-29384756": "nightly", "llama-4f9c2d81": "llama",
		"llama3-sweep": "llama3-sweep", "llama3-sweep-12": "llama3-sweep", "resnet50": "resnet50", "resnet50-3": "resnet50", "llama-3-8b": "llama-3-8b",
		"llama-3-8b-x7k2p": "llama-3-8b", "llama-3-x7k2p": "llama-3", "sweep-12-3": "sweep", "train-gpt2": "train-gpt2", "a1-b2": "a1-b2", "7": "7", "-7": "-7", "": "",
	} {
		if got := RunsName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
