// Generates the Markdown reference of the entry points, then all pages as HTML.
import { rmSync } from 'node:fs'
import { Application } from 'typedoc'
import { build } from 'astro'
import { entryPoints, root, site } from './src/content/package.ts'

const folder = `${site}.api`
rmSync(folder, { recursive: true, force: true })
const options = {
  plugin: ['typedoc-plugin-markdown'],
  entryPoints: entryPoints.map(({ source }) => root + source),
  tsconfig: `${root}tsconfig.build.json`,
  // TypeDoc does not support the package's TypeScript version yet. `npm run check` checks the types.
  skipErrorChecking: true,
  excludeInternal: true,
  excludePrivate: true,
  disableSources: true,
  readme: 'none',
  name: 'API reference',
  out: folder,
  logLevel: 'Error' as const,
  // Options of typedoc-plugin-markdown.
  hideBreadcrumbs: true,
  hidePageHeader: true,
  parametersFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  // What people call comes first.
  groupOrder: ['Functions', 'Classes', 'Interfaces', '*'],
}
const app = await Application.bootstrapWithPlugins(options)
const project = await app.convert()
if (!project) throw new Error('TypeDoc cannot read the entry points.')
await app.generateOutputs(project)
if (app.logger.hasErrors()) throw new Error('TypeDoc has reported errors.')

process.env.ASTRO_TELEMETRY_DISABLED = '1'
await build({ root: site, logLevel: 'warn' })
