/** The store, with a report of each written record: the session and the record number. */
export function watchAppends(store, onAppended) {
  return Object.assign(Object.create(store), {
    append: (lease, records, ...more) => {
      const appended = store.append(lease, records, ...more)
      // An append may store only the summary.
      if (records.length > 0) onAppended(lease.sessionId, records.at(-1).seq)
      return appended
    },
  })
}

/** Ends this process, as by kill -9. */
export function die() {
  process.kill(process.pid, 'SIGKILL')
}
