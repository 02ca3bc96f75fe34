// Generated tables in documents. The benchmark replaces the text between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`.
const between = (name, text) => [`<!-- bench:${name} -->`, text, `<!-- /bench:${name} -->`].join('\n')
const section = (name) => new RegExp(`<!-- bench:${name} -->[^]*?<!-- /bench:${name} -->`)

/** Returns the document with the table replaced. */
export const written = (text, name, content) => text.replace(section(name), () => between(name, content))

/** Formats rows as a Markdown table. */
export function table(rows) {
  const columns = Object.keys(rows[0])
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [
    line(columns),
    line(columns.map(() => '---')),
    ...rows.map((row) => line(columns.map((column) => row[column]))),
  ].join('\n')
}
