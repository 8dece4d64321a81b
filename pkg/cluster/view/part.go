package view

import corev1 "k8s.io/api/core/v1"

// Part is the consumer with some of its pods alone, which go while the others stay.
func (h *Consumer) Part(pods []*corev1.Pod) *Consumer {
	part := *h
	part.Pods, part.Whole = pods, h
	return &part
}
