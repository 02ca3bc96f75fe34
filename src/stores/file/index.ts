/**
 * Sessions in a folder on disk, in a SQLite file that any number of processes can share. Requires Node 22.13 or the
 * package `libsql`.
 */
export { fileStore, type FileStoreOptions } from './file-store.js'
