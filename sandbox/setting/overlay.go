package setting

// Overlay returns s with what was typed on the command line in its place. typed
// holds the values of all flags, isTyped tells which of them were given.
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
		"native-gangs":            func() { s.NativeGangs = typed.NativeGangs },
		"operator":                func() { s.Operator = typed.Operator },
		"operator-gang-scheduler": func() { s.OperatorGangScheduler = typed.OperatorGangScheduler },
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
	// A flag that was typed acts: what was asked for earlier gives way to it.
	if isTyped("nodes") && !isTyped("node-file") {
		s.NodeFile = ""
	}
	if isTyped("operator") && !s.Operator && !isTyped("operator-gang-scheduler") {
		s.OperatorGangScheduler = ""
	}
	return s
}
