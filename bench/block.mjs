// Measured tables in the documents: what stands between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->` is written by
// what measures it.
const between = (name, text) => [`<!-- bench:${name} -->`, text, `<!-- /bench:${name} -->`].join('\n')
const section = (name) => new RegExp(`<!-- bench:${name} -->[^]*?<!-- /bench:${name} -->`)

/** The document with a new table. */
export const written = (text, name, content) => text.replace(section(name), () => between(name, content))

/** Rows as a table in Markdown. */
export function table(rows) {
  const columns = Object.keys(rows[0])
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [
    line(columns),
    line(columns.map(() => '---')),
    ...rows.map((row) => line(columns.map((column) => row[column]))),
  ].join('\n')
}
