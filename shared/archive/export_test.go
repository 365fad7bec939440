package archive

// LimitBatch makes the batches of the worker smaller.
func (w *Worker) LimitBatch(subjects, bytes int) { w.batchSubjects, w.batchBytes = subjects, bytes }
