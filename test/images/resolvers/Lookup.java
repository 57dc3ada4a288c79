import java.net.Inet4Address;
import java.net.InetAddress;

/** Prints the IPv4 addresses of each name, one a line; a name that has none is an exception. */
class Lookup {
	public static void main(String[] names) throws Exception {
		for (String name : names)
			for (InetAddress one : InetAddress.getAllByName(name))
				if (one instanceof Inet4Address)
					System.out.println(one.getHostAddress());
	}
}
