// Long-term memory over a store of the application.

import { ConfigError } from './errors.js';

const STORE_METHODS = ['save', 'get', 'list', 'delete'];

const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

export class MemoryManager {
  #store;

  constructor(store) {
    const missing = STORE_METHODS.filter((name) => typeof store?.[name] !== 'function');
    if (missing.length > 0) throw new ConfigError(`a memory store needs the methods ${missing.join(', ')}`);
    this.#store = store;
  }

  async save(memory) {
    return await this.#store.save(memory);
  }

  async get(name) {
    return await this.#store.get(name);
  }

  async delete(name) {
    return await this.#store.delete(name);
  }

  async list() {
    return [...(await this.#store.list())].sort(byName);
  }

  async search(query) {
    const wanted = query.toLowerCase();
    const memories = await this.list();
    return memories.filter(({ name, description, body }) =>
      [name, description, body].some((text) => text?.toLowerCase().includes(wanted)),
    );
  }

  async readIndexContent() {
    const memories = await this.list();
    if (memories.length === 0) return '(no memories saved)';
    return memories.map(({ name, type, description }) => `- ${name} (${type}): ${description}`).join('\n');
  }
}
