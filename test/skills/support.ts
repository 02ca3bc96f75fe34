import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A temporary folder with files, removed after the tests. */
export function folderOf(files: Record<string, string | Buffer>): string {
  const folder = mkdtempSync(join(tmpdir(), 'statewright-skills-'))
  created.push(folder)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

const created: string[] = []

export function removeFolders(): void {
  for (const folder of created.splice(0)) rmSync(folder, { recursive: true, force: true })
}

/** A SKILL.md. */
export const skillFile = (name: string, body = 'Do it well.\n', more = ''): string =>
  `---\nname: ${name}\ndescription: How to do ${name}.\n${more}---\n${body}`
