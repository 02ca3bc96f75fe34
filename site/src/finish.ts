import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AstroIntegration } from 'astro'
import { checkLinks } from './check-links.ts'
import { toAddress } from './content/links.ts'
import { addresses, root } from './content/package.ts'
import { type Page, readPages } from './content/pages.ts'

/** Adds the non-HTML files to the built site: Markdown versions of all pages, `llms.txt`, and linked files. */
export function finish(): AstroIntegration {
  return {
    name: 'finish',
    hooks: {
      'astro:build:done': async ({ dir, logger }) => {
        const folder = fileURLToPath(dir)
        const { pages, files } = readPages()
        const write = (name: string, text: string): void => {
          mkdirSync(dirname(folder + name), { recursive: true })
          writeFileSync(folder + name, text)
        }
        for (const { id, md } of pages) write(`${id}.md`, `${md.trim()}\n`)
        write('llms.txt', listForModels(pages))
        write(
          'llms-full.txt',
          pages
            .filter(isDocument)
            .map(({ md }) => md.trim())
            .join('\n\n---\n\n') + '\n',
        )
        for (const { from, to } of files) {
          mkdirSync(dirname(folder + to), { recursive: true })
          copyFileSync(root + from, folder + to)
        }
        const { broken, checked } = await checkLinks(folder, addresses.base)
        if (broken.length > 0) throw new Error(`${broken.length} links are broken:\n${broken.join('\n')}`)
        logger.info(`${pages.length} pages, ${checked} links`)
      },
    },
  }
}

const isDocument = ({ id }: Page): boolean => id === 'readme' || /^(docs|examples)(\/|$)/.test(id)

/** The format of llmstxt.org, with a heading, a quoted summary, and link lists. */
function listForModels(pages: readonly Page[]): string {
  const line = ({ id, title, description }: Page): string =>
    `- [${title}](${toAddress(id, 'md')})${description && `: ${description}`}`
  const isEntry = ({ id }: Page): boolean =>
    id.startsWith('api/') && !/\/(classes|functions|interfaces|type-aliases|variables)\//.test(id)
  return (
    [
      '# Statewright',
      '> A TypeScript library with the agent loop as one explicit XState statechart. All linked pages are Markdown.',
      `All documents in one file: [llms-full.txt](${addresses.base}llms-full.txt)`,
      '## Documents',
      pages.filter(isDocument).map(line).join('\n'),
      '## API',
      pages.filter(isEntry).map(line).join('\n'),
      '## Optional',
      pages
        .filter(({ id }) => ['changelog', 'contributing', 'security', 'visualizations'].includes(id))
        .map(line)
        .join('\n'),
    ].join('\n\n') + '\n'
  )
}
