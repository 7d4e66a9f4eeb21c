import package

package.User().save()
package.views.show()
