/**
 * More threads for calls of the file system than there are workers: where all workers hang in the export directory, the token of
 * the service account is still read and the lock renewed. Node.js reads the variable when it starts the first thread.
 */
process.env['UV_THREADPOOL_SIZE'] ??= '16';
