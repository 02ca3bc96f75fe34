/** Sessions in a SQLite file that processes can share. Requires Node 22.13 or the package `libsql`. */
export { fileStore, type FileStoreOptions } from './file-store.js'
