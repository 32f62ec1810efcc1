/**
 * More threads for file system calls than there are workers: while all workers hang in the export directory, the token of
 * the service account can still be read and the lock renewed. Node.js reads the variable when it starts the first thread.
 */
process.env['UV_THREADPOOL_SIZE'] ??= '16';
