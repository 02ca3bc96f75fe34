import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UsageError } from './options.mjs'

const assembled = fileURLToPath(new URL('../dist/templates', import.meta.url))

/** Harmless files in a folder that counts as empty. */
const harmless = new Set(['.git', '.DS_Store', 'Thumbs.db'])

/** Returns the reason that the folder cannot hold a new project, as a sentence, or null. */
export function findFolderFault(folder) {
  if (folder.trim() === '') return 'FOLDER is empty. Give a name, such as my-agent, or . for this folder.'
  const reserved = resolve(folder)
    .split(/[\\/]/)
    .find((part) => /^(node_modules|favicon\.ico)$/i.test(part))
  if (reserved !== undefined)
    return `'${folder}' cannot be a project: npm reserves the name ${reserved}. Give another folder.`
  if (!existsSync(folder)) return null
  if (!statSync(folder).isDirectory()) return `'${folder}' is a file. Give a new or an empty folder.`
  const [first, ...more] = readdirSync(folder).filter((name) => !harmless.has(name))
  if (first === undefined) return null
  const what = more.length === 0 ? first : `${first} and ${more.length} more`
  return `'${folder}' is not empty: it has ${what}. Give a new or an empty folder.`
}

/**
 * Writes the files of a template into a folder and returns their number.
 * @param packageSpec the Statewright dependency in the project's package.json, as a version range, or `file:PATH`
 * @throws {UsageError} when the folder is not empty
 */
export function createProject({ folder, template, packageSpec }) {
  const fault = findFolderFault(folder)
  if (fault) throw new UsageError(fault)
  mkdirSync(folder, { recursive: true })
  const origin = join(assembled, template)
  cpSync(origin, folder, { recursive: true })
  // npm leaves a file with this name out of a package.
  renameSync(join(folder, '_gitignore'), join(folder, '.gitignore'))
  const path = join(folder, 'package.json')
  const project = JSON.parse(readFileSync(path, 'utf8'))
  const name = toPackageName(basename(resolve(folder)))
  // npm does not install a package into a project with the same name.
  const isTaken = Object.hasOwn({ ...project.dependencies, ...project.devDependencies }, name)
  project.name = isTaken ? `${name}-app` : name
  project.dependencies.statewright = packageSpec
  writeFileSync(path, `${JSON.stringify(project, null, 2)}\n`)
  return readdirSync(origin, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .length
}

/** A valid npm name, derived from the name of a folder. */
export function toPackageName(name) {
  const slug = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[._-]+|[._-]+$/g, '')
    .slice(0, 200)
  return slug === '' ? 'my-agent' : slug
}
