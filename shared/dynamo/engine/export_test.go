package engine

// AddStreamIndex is open to the tests, which show it a layout that no engine of the
// pinned version has.
var AddStreamIndex = addStreamIndex

// DataFile returns the database file of scratch data.
func (e *Engine) DataFile() string { return e.scratch.dataFile() }

// ScratchDirectory returns the directory that ends with the engine.
func (e *Engine) ScratchDirectory() string { return e.scratch.directory }
