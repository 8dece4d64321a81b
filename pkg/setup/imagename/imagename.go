// Package imagename reads the names of images, by which programs are recognised. It is pure.
package imagename

import "strings"

// Split is an image without its digest: the repository, such as registry.k8s.io/kueue/kueue, and the tag, which may be empty.
func Split(image string) (repository, tag string) {
	path, _, _ := strings.Cut(image, "@")
	name := strings.LastIndexByte(path, '/') + 1
	last, tag, _ := strings.Cut(path[name:], ":")
	return path[:name] + last, tag
}

// Base is the last part of the repository of an image.
func Base(image string) string {
	repository, _ := Split(image)
	return repository[strings.LastIndexByte(repository, '/')+1:]
}
