// Here, because a package is looked for from the file that asks for it.
export * from 'ai'
