// Calls of workers.

/** A worker, whose answers are promises. A call can get parts of its answer before it ends. */
export class Remote {
  #worker;
  #calls = new Map();
  #last = 0;
  #isEnded = false;

  /** `make` makes the worker. */
  constructor(make) {
    this.#worker = make();
    this.#worker.onmessage = ({ data: { id, result, error, ...part } }) => {
      const call = this.#calls.get(id);
      if (error === undefined && result === undefined) return call?.onPart(part);
      this.#calls.delete(id);
      if (error === undefined) call?.resolve(result);
      else call?.reject(new Error(error));
    };
    this.#worker.onerror = (event) => this.#fail(event.message);
  }

  /** Sends a message. The result is that of the worker. `onPart` gets each part of the answer before. */
  call(message, transfer = [], onPart = undefined) {
    if (this.#isEnded) return Promise.reject(new Error("the worker was ended"));
    return new Promise((resolve, reject) => {
      this.#calls.set(++this.#last, { resolve, reject, onPart });
      this.#worker.postMessage({ id: this.#last, ...message }, transfer);
    });
  }

  /** Sends a message that has no answer. */
  send(message) {
    this.#worker.postMessage(message);
  }

  /** Ends the worker at once. The calls that it has not answered fail. */
  end() {
    this.#isEnded = true;
    this.#worker.terminate();
    this.#fail("the worker was ended");
  }

  #fail(message) {
    for (const { reject } of this.#calls.values()) reject(new Error(message));
    this.#calls.clear();
  }
}
