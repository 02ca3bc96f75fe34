const files = import.meta.glob<string>('../../../examples/notes/*.txt', {
  query: '?raw',
  import: 'default',
  eager: true,
})

/** The notes that the playground's tools read, by file name. */
export const notes = new Map(
  Object.entries(files).map(([path, text]) => [path.slice(path.lastIndexOf('/') + 1), text]),
)
