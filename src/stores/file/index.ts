/** Sessions in a folder on disk: SQLite, one file, any number of processes. Node 22.13, or the package `libsql`. */
export { fileStore, type FileStoreOptions } from './file-store.js'
