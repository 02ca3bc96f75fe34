/** Sessions in a folder on disk: SQLite, one file, any number of processes. Node only. */
export { fileStore, type FileStoreOptions } from './file-store.js'
